package main

import "syscall"

// childAttr makes the kernel end a replica when the soak is gone, also one that is frozen and does
// not see the end of its input. The thread that starts it has to stay: see stage.run.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

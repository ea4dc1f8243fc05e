package integration

import "syscall"

// childAttr makes the kernel end a process of a history when the test is gone, also one that is
// frozen and does not see the end of its input. The thread that starts it has to stay: see
// stage.run.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

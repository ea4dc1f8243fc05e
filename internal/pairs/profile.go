package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// A profile is of this process, with the libraries in it; of the nodes, which are others, it shows
// what asking them takes here.
type profile struct {
	dir string // "": none is made
	cpu *os.File
}

// start begins to look where processor time goes. The allocations are those from the process' begin.
func (p *profile) start() (err error) {
	if p.dir == "" {
		return nil
	}
	if p.cpu, err = os.Create(filepath.Join(p.dir, "cpu.pprof")); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.cpu)
}

// stop writes the files.
func (p *profile) stop() error {
	if p.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	allocs, err := os.Create(filepath.Join(p.dir, "allocs.pprof"))
	if err != nil {
		return errors.Join(err, p.cpu.Close())
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), p.cpu.Close())
}

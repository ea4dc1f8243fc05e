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
	cpu, allocs *os.File // nil: none is made
}

// openProfile makes the directory and the files, so that what is wrong with them is known before
// anything is measured. dir "": no profile. close closes them.
func openProfile(dir string) (*profile, error) {
	p := &profile{}
	if dir == "" {
		return p, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if p.cpu, err = os.Create(filepath.Join(dir, "cpu.pprof")); err != nil {
		return nil, err
	}
	if p.allocs, err = os.Create(filepath.Join(dir, "allocs.pprof")); err != nil {
		return nil, errors.Join(err, p.cpu.Close())
	}
	return p, nil
}

// start begins to look where processor time goes. The allocations are those from the process' begin.
func (p *profile) start() error {
	if p.cpu == nil {
		return nil
	}
	return pprof.StartCPUProfile(p.cpu)
}

// stop ends what start began, and writes the files.
func (p *profile) stop() error {
	if p.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return pprof.Lookup("allocs").WriteTo(p.allocs, 0)
}

func (p *profile) close() error {
	if p.cpu == nil {
		return nil
	}
	return errors.Join(p.allocs.Close(), p.cpu.Close())
}

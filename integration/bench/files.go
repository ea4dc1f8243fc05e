package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files are what a run writes; "": none.
type files struct{ out, svg string }

// check says what would be in the way of writing. What is there already stays as it is until there is
// something to replace it by.
func (f files) check() error {
	var errs []error
	if f.out != "" {
		errs = append(errs, ofFlag("-out", writable(f.out)))
	}
	if f.svg != "" {
		errs = append(errs, ofFlag("-svg", writable(f.svg)))
	}
	if f.out != "" && f.svg != "" {
		if filepath.Clean(f.out) == filepath.Clean(f.svg) {
			errs = append(errs, fmt.Errorf("-out and -svg are the same file, %s", f.out))
		}
		_, err := f.link()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func ofFlag(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// writable says why a file cannot be written.
func writable(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		return errors.Join(file.Close(), os.Remove(name))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return err
	}
	return file.Close()
}

// link is the chart's path from the document; "": there is none.
func (f files) link() (string, error) {
	if f.svg == "" {
		return "", nil
	}
	link, err := filepath.Rel(filepath.Dir(f.out), f.svg)
	if err != nil {
		return "", fmt.Errorf("-svg %s cannot be named from -out %s: %w", f.svg, f.out, err)
	}
	return link, nil
}

// write writes the document and the chart where they are wanted.
func (f files) write(d *document) error {
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(d.chart()), 0o644); err != nil {
			return err
		}
	}
	if f.out == "" {
		return nil
	}
	link, err := f.link()
	if err != nil {
		return err
	}
	return os.WriteFile(f.out, []byte(d.markdown(link)), 0o644)
}

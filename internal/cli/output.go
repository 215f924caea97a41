package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Output is a file that the result is written to. A nil *Output is none.
type Output struct{ file *os.File }

// Create makes the file before the run that it is for: an hour later is too late to
// find out that it cannot be made. Without a name it makes none.
func Create(name string) (*Output, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, Usage("%w", err)
	}
	return &Output{file}, nil
}

func (o *Output) Write(to func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	return errors.Join(to(o.file), o.file.Close())
}

// Abandon removes the file: there is nothing to write.
func (o *Output) Abandon() error {
	if o == nil {
		return nil
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}

// Interrupted is the outcome of a run that ^C cut short.
func Interrupted(what string) error {
	return &Exit{ExitSignal + int(syscall.SIGINT), fmt.Errorf("interrupted: %s", what)}
}

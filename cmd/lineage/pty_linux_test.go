package main

import (
	"io"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// pty is a terminal that keeps what is written to it.
type pty struct {
	// File is the side that programs have.
	File *os.File
	// Changed has a value when something was written.
	Changed chan struct{}

	master *os.File
	mu     sync.Mutex
	wrote  []byte
	ended  chan struct{}
}

// openPTY returns a terminal of 100 columns that passes bytes on as they are.
func openPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	file, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	_, err = term.MakeRaw(int(file.Fd()))
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(file.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}))
	p := &pty{File: file, Changed: make(chan struct{}, 1), master: master, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		io.Copy(writerFunc(func(b []byte) (int, error) {
			p.mu.Lock()
			p.wrote = append(p.wrote, b...)
			p.mu.Unlock()
			select {
			case p.Changed <- struct{}{}:
			default:
			}
			return len(b), nil
		}), master)
	}()
	t.Cleanup(func() {
		file.Close()
		master.Close()
		<-p.ended
	})
	return p
}

// Written returns everything that was written until now.
func (p *pty) Written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.wrote)
}

// Close closes the side that programs have, and returns everything that was written.
func (p *pty) Close() string {
	p.File.Close()
	<-p.ended
	return p.Written()
}

// Type types at the terminal.
func (p *pty) Type(text string) error {
	_, err := io.WriteString(p.master, text)
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

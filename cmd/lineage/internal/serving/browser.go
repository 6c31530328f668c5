package serving

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// openedFor is how long the file that leads a browser to the page is kept. It is as long as the link works.
const openedFor = time.Minute

// openBrowser opens a link in the user's browser. Other users can see the arguments of programs, so the link is in a
// file that only this user can read.
func openBrowser(dir, link string) error {
	f, err := os.CreateTemp(dir, "open-*.html") // mode 0600
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"+
		"<meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%[1]s\">Lineage</a>\n", html.EscapeString(link))
	if err = errors.Join(err, f.Close()); err == nil {
		err = startBrowser(f.Name())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// startBrowser starts the user's program for a file.
func startBrowser(file string) error {
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // it is no process of ours any more, whatever came of it
	return nil
}

// removeOpened removes files that led browsers to the page, after their links have expired.
func removeOpened(dir string, now time.Time) {
	files, _ := filepath.Glob(filepath.Join(dir, "open-*.html")) // only the pattern can be wrong
	for _, file := range files {
		if info, err := os.Lstat(file); err == nil && now.Sub(info.ModTime()) > openedFor {
			_ = os.Remove(file) // the next server tries again
		}
	}
}

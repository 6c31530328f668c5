// Package login makes the entries with which systems start a program when its user logs in.
package login

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// ErrUnknownSystem is returned for a system whose entries are not known.
var ErrUnknownSystem = errors.New("how this system starts programs at login is not known")

// Program is a program that runs until it is stopped.
type Program struct {
	// Name is a word. Title says what the program does.
	Name, Title string
	// Args are the full path of the program and its arguments.
	Args []string
	// Variables are the variables that it needs, which a login may not set.
	Variables []Variable
}

// Variable is a variable of an environment.
type Variable struct{ Name, Value string }

// Autostart is a file that makes a system start a program at each login, and how the program is started now.
type Autostart struct {
	// Path is the path of the file, and Text its content.
	Path, Text string
	// Start is the command that starts the program now and, if the file does not do that by itself, at each login.
	Start []string
}

// For returns the autostart of a program for the user of an environment. The number of the user is for macOS.
func For(e *follow.Environment, user int, p *Program) (*Autostart, error) {
	for _, text := range p.texts() {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return nil, fmt.Errorf("%q cannot be written in an entry: %w", text, lineage.ErrInvalid)
		}
	}
	switch e.OS {
	case "linux":
		return p.systemd(e)
	case "darwin":
		return p.launchd(e, user)
	case "windows":
		return p.startup(e)
	}
	return nil, fmt.Errorf("%s: %w", e.OS, ErrUnknownSystem)
}

func (p *Program) texts() []string {
	texts := append([]string{p.Name, p.Title}, p.Args...)
	for _, v := range p.Variables {
		texts = append(texts, v.Name, v.Value)
	}
	return texts
}

// systemd returns a unit of the user's service manager.
func (p *Program) systemd(e *follow.Environment) (*Autostart, error) {
	if strings.ContainsAny(p.Args[0], `$"\`) { // systemd has no way to write it
		return nil, fmt.Errorf("program %s: %w: move it to a path without $, quotes and backslashes", p.Args[0], lineage.ErrInvalid)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[Unit]\nDescription=%s\n\n[Service]\n", p.Title)
	for _, v := range p.Variables {
		fmt.Fprintf(&b, "Environment=%s\n", systemdWord(v.Name+"="+v.Value))
	}
	words := make([]string, len(p.Args))
	for i, arg := range p.Args {
		words[i] = strings.ReplaceAll(systemdWord(arg), "$", "$$")
	}
	fmt.Fprintf(&b, "ExecStart=%s\nRestart=on-failure\nRestartSec=30\nNice=10\n\n[Install]\nWantedBy=default.target\n", strings.Join(words, " "))
	path := filepath.Join(e.Dir("XDG_CONFIG_HOME", ".config"), "systemd", "user", p.Name+".service")
	return &Autostart{Path: path, Text: b.String(), Start: []string{"systemctl", "--user", "enable", "--now", p.Name}}, nil
}

// systemdWord returns a word of a unit.
func systemdWord(word string) string {
	word = strings.NewReplacer(`%`, `%%`, `\`, `\\`, `"`, `\"`).Replace(word)
	if word == "" || strings.ContainsAny(word, " '\"\\;") {
		return `"` + word + `"`
	}
	return word
}

// launchd returns an agent of the user.
func (p *Program) launchd(e *follow.Environment, user int) (*Autostart, error) {
	var b bytes.Buffer
	text := func(element, s string) {
		fmt.Fprintf(&b, "<%s>", element)
		xml.EscapeText(&b, []byte(s)) // a buffer never fails
		fmt.Fprintf(&b, "</%s>", element)
	}
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n<plist version=\"1.0\"><dict>\n  <key>Label</key>")
	text("string", p.Name)
	b.WriteString("\n  <key>ProgramArguments</key><array>\n")
	for _, arg := range p.Args {
		b.WriteString("    ")
		text("string", arg)
		b.WriteByte('\n')
	}
	b.WriteString("  </array>\n")
	if len(p.Variables) > 0 {
		b.WriteString("  <key>EnvironmentVariables</key><dict>\n")
		for _, v := range p.Variables {
			b.WriteString("    ")
			text("key", v.Name)
			text("string", v.Value)
			b.WriteByte('\n')
		}
		b.WriteString("  </dict>\n")
	}
	b.WriteString("  <key>RunAtLoad</key><true/>\n  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  <key>ProcessType</key><string>Background</string>\n</dict></plist>\n")
	path := filepath.Join(e.Home, "Library", "LaunchAgents", p.Name+".plist")
	return &Autostart{Path: path, Text: b.String(), Start: []string{"launchctl", "bootstrap", fmt.Sprintf("gui/%d", user), path}}, nil
}

// startup returns a batch file in the folder of programs that start at login.
func (p *Program) startup(e *follow.Environment) (*Autostart, error) {
	var b strings.Builder
	b.WriteString("@echo off\r\nchcp 65001 >nul\r\n")
	percent := strings.NewReplacer("%", "%%")
	for _, v := range p.Variables {
		if strings.Contains(v.Value, `"`) {
			return nil, fmt.Errorf("variable %s: a quote in its value: %w", v.Name, lineage.ErrInvalid)
		}
		fmt.Fprintf(&b, "set \"%s=%s\"\r\n", v.Name, percent.Replace(v.Value))
	}
	b.WriteString(`start "` + p.Title + `" /min`)
	for _, arg := range p.Args {
		if strings.Contains(arg, `"`) {
			return nil, fmt.Errorf("%s: a quote: %w", arg, lineage.ErrInvalid)
		}
		if word := percent.Replace(arg); strings.ContainsAny(word, " \t&|<>()[]{}^=;!'+,`~%") {
			b.WriteString(` "` + word + `"`)
		} else {
			b.WriteString(" " + word)
		}
	}
	b.WriteString("\r\n")
	path := filepath.Join(e.Dir("APPDATA", "AppData", "Roaming"), "Microsoft", "Windows", "Start Menu", "Programs", "Startup", p.Name+".cmd")
	return &Autostart{Path: path, Text: b.String(), Start: []string{path}}, nil
}

// Write writes the file of the entry, and reports whether it was not there. If there is a file with other content, it stays,
// and the error is lineage.ErrExists.
func (e *Autostart) Write() (written bool, err error) {
	if err := os.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
		return false, err
	}
	f, err := os.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Lstat(e.Path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(e.Text)) {
			if text, err := os.ReadFile(e.Path); err == nil && string(text) == e.Text {
				return false, nil
			}
		}
		return false, fmt.Errorf("%s: %w with other content", e.Path, lineage.ErrExists)
	}
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(e.Text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(e.Path))
	}
	return true, nil
}

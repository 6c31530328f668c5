package follow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Environment determines the folders of agents and of this program.
type Environment struct {
	// Home is the user's home directory. OS has the values of runtime.GOOS.
	Home, OS string
	Getenv   func(string) string
}

// ErrNoHome is returned for an environment without a home directory.
var ErrNoHome = errors.New("the home directory is not known")

// NewEnvironment returns the environment of this system with the variables from getenv. Default os.Getenv.
func NewEnvironment(getenv func(string) string) (*Environment, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	e := &Environment{OS: runtime.GOOS, Getenv: getenv}
	variable := e.homeVariable()
	if e.Home = getenv(variable); !filepath.IsAbs(e.Home) {
		return nil, fmt.Errorf("%w: %s is not set to a full path", ErrNoHome, variable)
	}
	return e, nil
}

func (e *Environment) homeVariable() string {
	if e.OS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// config returns the folder for programs' configurations.
func (e *Environment) config() string {
	switch e.OS {
	case "windows":
		return e.Dir("APPDATA", "AppData", "Roaming")
	case "darwin":
		return filepath.Join(e.Home, "Library", "Application Support")
	}
	return e.Dir("XDG_CONFIG_HOME", ".config")
}

// State returns the folder for this program's data that belongs to no store.
func (e *Environment) State() string {
	if e.OS == "windows" || e.OS == "darwin" {
		return filepath.Join(e.config(), "lineage")
	}
	return filepath.Join(e.Dir("XDG_STATE_HOME", ".local", "state"), "lineage")
}

// Dir returns the folder named by an environment variable, or else one below the home directory.
func (e *Environment) Dir(variable string, below ...string) string {
	if dir := e.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(append([]string{e.Home}, below...)...)
}

// data returns the folder for programs' data. It is the same on macOS, as for most programs for terminals.
func (e *Environment) data() string { return e.Dir("XDG_DATA_HOME", ".local", "share") }

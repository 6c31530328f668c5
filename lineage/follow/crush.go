package follow

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
)

// maxProjects limits the number of followed projects of Crush.
const maxProjects = 10_000

// crush returns the folders of Crush: the database in each project, and the list of projects.
func (e *Environment) crush() []sessionFolder {
	data := filepath.Join(e.data(), "crush")
	switch dir := e.Getenv("CRUSH_GLOBAL_DATA"); {
	case filepath.IsAbs(dir):
		data = filepath.Clean(dir)
	case e.OS == "windows" && !filepath.IsAbs(e.Getenv("XDG_DATA_HOME")):
		data = filepath.Join(e.Dir("LOCALAPPDATA", "AppData", "Local"), "crush")
	}
	list := sessionsIn(data, "projects.json")
	list.index = true
	folders := []sessionFolder{list}
	var projects struct {
		Projects []struct {
			Path    string `json:"path"`
			DataDir string `json:"data_dir"`
		} `json:"projects"`
	}
	b, err := vfs.ReadFile(filepath.Join(data, "projects.json"), 16<<20)
	if err != nil || json.Unmarshal(b, &projects) != nil { // it is being written, and will change again
		return folders
	}
	known := make(map[string]bool)
	for _, p := range projects.Projects {
		dir := p.DataDir
		if dir == "" {
			dir = ".crush"
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.Path, dir)
		}
		dir = filepath.Clean(dir)
		if !filepath.IsAbs(dir) || known[dir] || len(folders) > maxProjects {
			continue
		}
		known[dir] = true
		if info, err := os.Stat(dir); err != nil || !info.IsDir() { // the project is gone
			continue
		}
		folder := sessionsIn(dir, "crush.db")
		if filepath.IsAbs(p.Path) {
			folder.project = filepath.Clean(p.Path)
		}
		folders = append(folders, folder)
	}
	return folders
}

// goose returns the folder in which Goose keeps its sessions.
func (e *Environment) goose() string {
	if root := e.Getenv("GOOSE_PATH_ROOT"); filepath.IsAbs(root) {
		return filepath.Join(filepath.Clean(root), "data", "sessions")
	}
	if e.OS == "windows" {
		return filepath.Join(e.config(), "Block", "goose", "data", "sessions")
	}
	return filepath.Join(e.data(), "goose", "sessions")
}

//lint:file-ignore SA1019 roots are deprecated from revision 2026-07-28 on. Clients of the earlier ones have them.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// Everything is the scope of a client that may read the whole store.
func Everything(context.Context, *mcp.ServerSession) (access.Scope, error) {
	return access.Scope{}, nil
}

const (
	// maxRoots limits the roots of a client.
	maxRoots = 32
	// rootsTime limits the time in which a client must state its roots.
	rootsTime = 10 * time.Second
)

// ErrNoProject is returned if the project of a client is unknown.
var ErrNoProject = errors.New("the project that the client works in is not known")

// Project returns the scope of a client on the standard streams: the conversations of sessions that began in one of
// its roots. If the client states no roots, the working directory of the process is used.
func Project(dir string) func(context.Context, *mcp.ServerSession) (access.Scope, error) {
	return func(ctx context.Context, s *mcp.ServerSession) (access.Scope, error) {
		folders, err := roots(ctx, s)
		if err != nil {
			return access.Scope{}, err
		}
		if len(folders) == 0 {
			folders = []string{dir}
		}
		var scope access.Scope
		for _, folder := range folders {
			for _, name := range namesOf(folder) {
				if !slices.Contains(scope.Projects, name) {
					scope.Projects = append(scope.Projects, name)
				}
			}
		}
		if scope.All() { // an empty scope would be the whole store
			return scope, ErrNoProject
		}
		return scope, nil
	}
}

// namesOf returns the names under which sessions may state a folder: as it is, and with links resolved.
func namesOf(folder string) (names []string) {
	if folder == "" {
		return nil
	}
	names = []string{folder}
	if real, err := filepath.EvalSymlinks(folder); err == nil && real != folder {
		names = append(names, real)
	}
	return names
}

// withoutRoots is the first revision of the protocol in which a server does not request roots.
const withoutRoots = "2026-07-28"

// roots returns the folders that a client states as its roots.
func roots(ctx context.Context, s *mcp.ServerSession) (folders []string, err error) {
	if s == nil || s.InitializeParams() == nil {
		return nil, nil
	}
	if client := s.InitializeParams(); client.ProtocolVersion >= withoutRoots || client.Capabilities == nil || client.Capabilities.RootsV2 == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTime)
	defer cancel()
	stated, err := s.ListRoots(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: its roots: %w", ErrNoProject, err)
	}
	if len(stated.Roots) > maxRoots {
		return nil, fmt.Errorf("%d roots: %w: at most %d", len(stated.Roots), lineage.ErrTooLarge, maxRoots)
	}
	for _, root := range stated.Roots {
		if folder := folderOf(root.URI, runtime.GOOS); folder != "" {
			folders = append(folders, folder)
		}
	}
	if len(stated.Roots) > 0 && len(folders) == 0 {
		return nil, fmt.Errorf("%w: none of its roots is a folder", ErrNoProject)
	}
	return folders, nil
}

// folderOf returns the path of a file URI, empty for other URIs.
func folderOf(uri, system string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return ""
	}
	path := u.Path
	if system == "windows" {
		path = strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", `\`)
		if len(path) > 1 && path[1] == ':' { // sessions have C:\, editors c:
			path = strings.ToUpper(path[:1]) + path[1:]
		}
		if len(path) > 3 {
			path = strings.TrimRight(path, `\`)
		}
		return path
	}
	if path != "/" {
		path = strings.TrimRight(path, "/")
	}
	return path
}

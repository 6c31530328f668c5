package install

import (
	"errors"
)

var (
	// ErrNoServers is returned for an agent that cannot start servers.
	ErrNoServers = errors.New("it has no MCP")
	// ErrByHand is returned for an agent whose configuration this package does not know.
	ErrByHand = errors.New("its configuration is not known here: add the command 'lineage mcp' to it by hand")
	// ErrDiffers is returned if there is an entry of the name with other content.
	ErrDiffers = errors.New("there is an entry of this name that says something else")
	// ErrUnreadable is returned for a file that is not in its format. It is not changed.
	ErrUnreadable = errors.New("it cannot be read as configuration")
)

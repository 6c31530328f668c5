package localsocket

import "errors"

// ErrUnsupported is returned where a directory cannot have a socket, or the user at the other end cannot be
// determined.
var ErrUnsupported = errors.New("sockets in this directory are not supported here")

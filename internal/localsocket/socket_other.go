//go:build !linux && !darwin

package localsocket

import "net"

// Listen is not supported on this system.
func Listen(string, string) (*net.UnixListener, error) { return nil, ErrUnsupported }

// Dial is not supported on this system.
func Dial(string, string) (*net.UnixConn, error) { return nil, ErrUnsupported }

// PeerUser is not supported on this system.
func PeerUser(*net.UnixConn) (int, error) { return 0, ErrUnsupported }

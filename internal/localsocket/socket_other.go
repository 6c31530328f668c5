//go:build !linux && !darwin

package localsocket

import "net"

// Listen is not supported here.
func Listen(string, string) (*net.UnixListener, error) { return nil, ErrUnsupported }

// Dial is not supported here.
func Dial(string, string) (*net.UnixConn, error) { return nil, ErrUnsupported }

// PeerUser is not supported here.
func PeerUser(*net.UnixConn) (int, error) { return 0, ErrUnsupported }

//go:build !unix

package sharing

func userOf(string) (int, bool) { return 0, false }

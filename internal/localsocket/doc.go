// Package localsocket provides Unix sockets in directories, and tells which users are at their ends. Directories with
// long paths work where the system allows it.
package localsocket

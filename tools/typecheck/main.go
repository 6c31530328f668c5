// Command typecheck type-checks packages with their tests and all that they import, for the system and processor that GOOS
// and GOARCH name. It finds what compiling would find in Go code, in a tenth of the time. It exits with 1 if there are errors.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: typecheck PACKAGE...")
		os.Exit(2)
	}
	n, err := check(".", os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
	}
	if n > 0 || err != nil {
		os.Exit(1)
	}
}

// check type-checks the packages that the patterns name in a directory, prints errors, and returns how many there are.
func check(dir string, patterns ...string) (int, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir:   dir,
		Env:   append(os.Environ(), "CGO_ENABLED=0"), // as in releases
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
		Tests: true,
	}, patterns...)
	if err != nil {
		return 0, err
	}
	return packages.PrintErrors(loaded), nil
}

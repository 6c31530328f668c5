package main

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lineage-bench": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": checkCode},
		RequireExplicitExec: true,
	})
}

// code N COMMAND... runs a command that must exit with N.
func checkCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	script := `"$@"; code=$?; if [ $code -ne ` + strconv.Itoa(want) + ` ]; then echo "exit code is $code" >&2; exit 99; fi`
	if err := ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...); err != nil {
		ts.Fatalf("exit code is not %d", want)
	}
}

package sources

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/login"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
)

func followInstallCommand(a *app.App) *cobra.Command {
	write := false
	c := &cobra.Command{
		Use:   "install",
		Short: "Start 'lineage follow' at login",
		Long: `Prints the entry that makes this system start 'lineage follow' with this store when you log in, and
the file that it belongs into: a unit of systemd, an agent of launchd, or on Windows a batch file in
the startup folder. --write writes the file; then the command that is printed starts it. Variables
that are set now and determine the folders of agents, such as CODEX_HOME, are in the entry. A file
with other content is not changed.`,
		Example: `  lineage follow install
  lineage follow install --write`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(context.Context, []string) error { return runFollowInstall(a, write) }),
	}
	c.Flags().BoolVar(&write, "write", false, "write the file")
	return c
}

func runFollowInstall(a *app.App, write bool) error {
	store, err := a.StoreForFile(app.MayBeNew)
	if err != nil {
		return err
	}
	environment, err := a.Environment()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := &login.Program{Name: "lineage-follow", Title: "Keep the sessions of agents", Args: []string{program, "follow", "--store", store}}
	for _, name := range environment.Variables() {
		p.Variables = append(p.Variables, login.Variable{Name: name, Value: environment.Getenv(name)})
	}
	e, err := login.For(environment, os.Getuid(), p)
	switch {
	case errors.Is(err, login.ErrUnknownSystem):
		return app.Hint(err, "let cron run 'lineage follow --once', or start 'lineage follow' as services are started there")
	case err != nil:
		return err
	}
	r := &records.LoginEntry{Path: e.Path, Entry: e.Text, Command: e.Start}
	start := screen.Line(resume.Shell(e.Start))
	if !write {
		a.Note("for %s; --write writes it, and this starts it then: %s", screen.Line(e.Path), start)
		return a.Print(r, "%s", e.Text)
	}
	r.Written, err = e.Write()
	if errors.Is(err, lineage.ErrExists) {
		return app.Hint(err, "without --write the entry is printed; delete the file to have it written")
	}
	if err != nil {
		return err
	}
	result := "wrote " + screen.Line(e.Path)
	if !r.Written {
		result = screen.Line(e.Path) + " is there already"
	}
	return a.Print(r, "%s\nThis starts it now and at each login: %s\n", result, start)
}

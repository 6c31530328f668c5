package serving

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

func TokenCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Create, list and delete tokens for 'lineage serve'",
		Long: `A token lets a program call 'lineage serve'. It is for reading unless it is created with --write,
and for the whole store unless users or projects are named. Tokens are kept outside the store, in a
file that only this user can read, and only as hashes: a copy of the store has none.`,
		Example: `  lineage token create --name ci --expires 24h
  lineage token list`,
		Args: app.KnownCommand,
		RunE: a.Does(func(context.Context, []string) error { return app.Usagef("'lineage token' needs a command") }),
	}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenDeleteCommand(a))
	return c
}

type tokenOptions struct {
	name            string
	write           bool
	users, projects []string
	expires         time.Duration
}

func tokenCreateCommand(a *app.App) *cobra.Command {
	o := &tokenOptions{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a token",
		Long: `Creates a token and prints it. It cannot be printed again. A program sends it as the header
"Authorization: Bearer TOKEN". With users and projects, it is for threads of one of the users and
one of the projects.`,
		Example: `  lineage token create --name ci --expires 24h
  lineage token create --user ada --json`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, _ []string) error { return runTokenCreate(ctx, s, o) }),
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "what it is for")
	f.BoolVar(&o.write, "write", false, "let it change the store, too")
	f.StringArrayVar(&o.users, "user", nil, "for threads of this user")
	f.StringArrayVar(&o.projects, "project", nil, "for sessions that began in this folder")
	f.DurationVar(&o.expires, "expires", 0, "the time until it expires; 0 is never")
	return c
}

func runTokenCreate(ctx context.Context, s *app.OpenStore, o *tokenOptions) error {
	if o.expires < 0 {
		return app.Usagef("--expires: must be 0 or more")
	}
	t := access.Token{Name: o.name, Writes: o.write, Scope: access.Scope{Users: o.users}}
	for _, project := range o.projects {
		full, err := app.ProjectPath(project)
		if err != nil {
			return err
		}
		t.Scope.Projects = append(t.Scope.Projects, full)
	}
	if o.expires > 0 {
		t.Expires = time.Now().UTC().Add(o.expires).Truncate(time.Second)
	}
	file, err := tokens(s)
	if err != nil {
		return err
	}
	t, secret, err := file.Create(ctx, t)
	if err != nil {
		return err
	}
	r := tokenRecord(&t)
	r.Secret = secret
	return s.Print(r, "%s\n", secret)
}

func tokenRecord(t *access.Token) *records.Token {
	r := &records.Token{ID: t.ID, Name: t.Name, Writes: t.Writes, Users: t.Scope.Users, Projects: t.Scope.Projects, CreatedAt: t.Created}
	if !t.Expires.IsZero() {
		r.ExpiresAt = &t.Expires
	}
	return r
}

func tokenListCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens",
		Long:    `Lists the tokens, oldest first, those that have ended too.`,
		Example: `  lineage token list`,
		Args:    cobra.NoArgs,
		RunE:    a.On(app.Reading|app.NoThread, runTokenList),
	}
}

func runTokenList(_ context.Context, s *app.OpenStore, _ []string) error {
	file, err := tokens(s)
	if err != nil {
		return err
	}
	all, err := file.List()
	if err != nil {
		return err
	}
	list := s.List("ID", "RIGHTS", "CREATED", "ENDS", "FOR", "NAME")
	for i := range all {
		t := &all[i]
		rights, ends, part := "read", "never", "the whole store"
		if t.Writes {
			rights = "read, write"
		}
		end := app.PlainCell(ends)
		if !t.Expires.IsZero() {
			end = app.TimeCell(t.Expires)
		}
		if !t.Scope.All() {
			part = strings.Join(append(append([]string(nil), t.Scope.Users...), t.Scope.Projects...), ", ")
		}
		list.Add(tokenRecord(t), app.IDCell(t.ID), app.PlainCell(rights), app.TimeCell(t.Created), end, app.PlainCell(part), app.PlainCell(t.Name))
	}
	return list.End("there are no tokens")
}

func tokenDeleteCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a token",
		Long:    `Deletes a token. Servers that run refuse it from then on, and end its streams of events soon.`,
		Example: `  lineage token delete 3f9ac2d1`,
		Args:    cobra.ExactArgs(1),
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, args []string) error {
			file, err := tokens(s)
			if err != nil {
				return err
			}
			if err := file.Delete(ctx, args[0]); err != nil {
				return err
			}
			return s.Deleted(&records.Deleted{What: "token", ID: args[0]})
		}),
	}
}

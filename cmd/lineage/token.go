package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Create, list and delete tokens for 'lineage serve'",
		Long: `A token lets a program call 'lineage serve'. It is for reading unless it is created with --write,
and for the whole store unless users or projects are named. Tokens are kept outside the store, in a
file that only this user can read, and only as hashes: a copy of the store has none.`,
		Example: `  lineage token create --name ci --expires 24h
  lineage token list`,
		Args: knownCommand,
		RunE: a.does(func(context.Context, []string) error { return usagef("'lineage token' needs a command") }),
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

func tokenCreateCommand(a *app) *cobra.Command {
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
		RunE: a.on(reading|noThread, func(ctx context.Context, s *session, _ []string) error { return runTokenCreate(ctx, s, o) }),
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "what it is for")
	f.BoolVar(&o.write, "write", false, "let it change the store, too")
	f.StringArrayVar(&o.users, "user", nil, "for threads of this user")
	f.StringArrayVar(&o.projects, "project", nil, "for sessions that began in this folder")
	f.DurationVar(&o.expires, "expires", 0, "end it after so long; 0 is never")
	return c
}

func runTokenCreate(ctx context.Context, s *session, o *tokenOptions) error {
	if o.expires < 0 {
		return usagef("--expires: must be 0 or more")
	}
	t := access.Token{Name: o.name, Writes: o.write, Scope: access.Scope{Users: o.users}}
	for _, project := range o.projects {
		full, err := projectPath(project)
		if err != nil {
			return err
		}
		t.Scope.Projects = append(t.Scope.Projects, full)
	}
	if o.expires > 0 {
		t.Expires = time.Now().UTC().Add(o.expires).Truncate(time.Second)
	}
	file, err := s.tokens()
	if err != nil {
		return err
	}
	t, secret, err := file.Create(ctx, t)
	if err != nil {
		return err
	}
	r := tokenRecord(&t)
	r.Secret = secret
	return s.print(r, "%s\n", secret)
}

func tokenRecord(t *access.Token) *records.Token {
	r := &records.Token{ID: t.ID, Name: t.Name, Writes: t.Writes, Users: t.Scope.Users, Projects: t.Scope.Projects, CreatedAt: t.Created}
	if !t.Expires.IsZero() {
		r.ExpiresAt = &t.Expires
	}
	return r
}

func tokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens",
		Long:    `Lists the tokens, oldest first, those that have ended too.`,
		Example: `  lineage token list`,
		Args:    cobra.NoArgs,
		RunE:    a.on(reading|noThread, runTokenList),
	}
}

func runTokenList(_ context.Context, s *session, _ []string) error {
	file, err := s.tokens()
	if err != nil {
		return err
	}
	all, err := file.List()
	if err != nil {
		return err
	}
	list := s.list("ID", "RIGHTS", "CREATED", "ENDS", "FOR", "NAME")
	for i := range all {
		t := &all[i]
		rights, ends, part := "read", "never", "the whole store"
		if t.Writes {
			rights = "read, write"
		}
		end := plainCell(ends)
		if !t.Expires.IsZero() {
			end = timeCell(t.Expires)
		}
		if !t.Scope.All() {
			part = strings.Join(append(append([]string(nil), t.Scope.Users...), t.Scope.Projects...), ", ")
		}
		list.add(tokenRecord(t), idCell(t.ID), plainCell(rights), timeCell(t.Created), end, plainCell(part), plainCell(t.Name))
	}
	return list.end("there are no tokens")
}

func tokenDeleteCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a token",
		Long:    `Deletes a token. Servers that run refuse it from then on, and end its streams of events soon.`,
		Example: `  lineage token delete 3f9ac2d1`,
		Args:    cobra.ExactArgs(1),
		RunE: a.on(reading|noThread, func(ctx context.Context, s *session, args []string) error {
			file, err := s.tokens()
			if err != nil {
				return err
			}
			if err := file.Delete(ctx, args[0]); err != nil {
				return err
			}
			return s.deleted(&records.Deleted{What: "token", ID: args[0]})
		}),
	}
}

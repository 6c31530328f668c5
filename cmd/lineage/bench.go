package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/bench"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

type benchOptions struct {
	config bench.Config
	goals  bool
	plots  string
	save   string
	check  string
	list   bool
}

func benchCommand(a *app) *cobra.Command {
	o := &benchOptions{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure what forks, extends and reads cost here",
		Long: `Measures this store beside others that keep histories: bare writes as the limit, a plain
key-value design, the documented SQL schema on SQLite and Postgres, a JSON file for each branch, a
snapshot of everything at each step, and the TypeScript package @deepagents/context. They work in turn in one run, and each says how durable what it
acknowledged is. Beside a goal stands what the parts that cannot be left out come to, measured by
themselves in the same run. It makes its own stores and does not look at any of yours.

The default takes about ten minutes, Postgres and archives included. --sizes 10,1k --store-messages 100k takes a few.
A store of ten million messages (--workloads store --store-messages 10M --systems lineage) takes a quarter of an hour
and 8 GB of disk, which is looked for first. Whatever was made is removed, also when the run is interrupted if that takes a second at most.`,
		Example: `  lineage bench --workloads history --sizes 10 --rounds 3 --systems lineage,write
  lineage bench --workloads length --sizes 10 --rounds 3 --systems lineage --goals --json
  lineage bench --workloads store --store-messages 20k --systems lineage --rounds 3
  lineage bench --list`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) error { return runBench(ctx, a, o) }),
	}
	f := c.Flags()
	f.StringSliceVar(&o.config.Workloads, "workloads", nil, "what to measure (default all; --list names them)")
	f.StringSliceVar(&o.config.Systems, "systems", nil, "what to compare: "+strings.Join(bench.Systems(), ", ")+" (default all that can run)")
	f.Var(countsFlag{&o.config.Sizes}, "sizes", "lengths of history (default 10,1k,100k)")
	f.IntVar(&o.config.Rounds, "rounds", 0, "how often each is measured (default 7)")
	f.IntVar(&o.config.MessageBytes, "message-bytes", 0, "size of a message (default 500)")
	f.Var(countFlag{&o.config.StoreMessages}, "store-messages", "messages in the large store (default 1M)")
	f.Var(countFlag{&o.config.Forks}, "forks", "most forks of one place (default 100k)")
	f.StringSliceVar(&o.config.Archives, "archive", nil, "file or folder of conversations to import and deduplicate")
	f.StringVar(&o.config.Postgres, "postgres", "", "address of a Postgres server to compare with, or private for one that is started for the run")
	f.StringVar(&o.config.NodeModules, "deepagents", "", "folder whose node_modules has @deepagents/context")
	f.StringVar(&o.config.Dir, "dir", "", "where to make stores (default the folder for temporary files)")
	f.Uint64Var(&o.config.Seed, "seed", 0, "seed of what is written (default 1)")
	f.BoolVar(&o.goals, "goals", false, "print only the goals and whether they are reached")
	f.BoolVar(&o.list, "list", false, "list the workloads and measure nothing")
	f.StringVar(&o.plots, "plots", "", "write plots as SVG into a folder")
	f.StringVar(&o.save, "save", "", "write the results as JSON lines to a file")
	f.StringVar(&o.check, "check", "", "compare with the results that --save wrote; exits with 8 if something became worse")
	return c
}

// Records of a benchmark. They are printed by package bench, which reads them back.
type (
	benchEnvironmentRecord bench.Environment
	measurementRecord      bench.Row
	ratioRecord            bench.Ratio
	growthRecord           bench.Growth
	goalRecord             bench.Goal
	unmeasuredRecord       bench.Skipped
)

func (*benchEnvironmentRecord) recordType() string { return "environment" }
func (*measurementRecord) recordType() string      { return "measurement" }
func (*ratioRecord) recordType() string            { return "ratio" }
func (*growthRecord) recordType() string           { return "growth" }
func (*goalRecord) recordType() string             { return "goal" }
func (*unmeasuredRecord) recordType() string       { return "unmeasured" }

// workloadRecord is a workload that --list names.
type workloadRecord struct {
	Name     string `json:"name"`
	Measures string `json:"measures"`
}

func (*workloadRecord) recordType() string { return "workload" }

func runBench(ctx context.Context, a *app, o *benchOptions) error {
	if o.list {
		return listWorkloads(a)
	}
	var before *bench.Report
	if o.check != "" {
		var err error
		if before, err = readReport(o.check); err != nil {
			return err
		}
	}
	line := a.progress("measuring", screen.Count)
	o.config.Progress = line.Say
	report, err := bench.Run(ctx, o.config)
	line.Done()
	if errors.Is(err, bench.ErrConfig) {
		return &usageError{err}
	}
	if report == nil {
		return err
	}
	// What was measured before a failure is printed all the same.
	return errors.Join(err, printReport(a, o, report), keepReport(a, o, report, before))
}

func listWorkloads(a *app) error {
	for _, name := range bench.Workloads() {
		if a.json {
			if err := a.emit(&workloadRecord{name, bench.Describe(name)}); err != nil {
				return err
			}
			continue
		}
		a.printf("%-10s %s\n", name, bench.Describe(name))
	}
	return nil
}

func printReport(a *app, o *benchOptions, report *bench.Report) error {
	switch {
	case a.json && o.goals:
		for i := range report.Goals {
			if err := a.emit((*goalRecord)(&report.Goals[i])); err != nil {
				return err
			}
		}
		return nil
	case a.json:
		return report.WriteJSON(screen.NewJSONFilter(a.out.W))
	case o.goals:
		return report.WriteGoals(a.out.W)
	}
	return report.WriteTable(a.out.W)
}

// keepReport writes the files asked for and compares with an earlier run.
func keepReport(a *app, o *benchOptions, report, before *bench.Report) error {
	if o.save != "" {
		if err := os.MkdirAll(filepath.Dir(o.save), 0o755); err != nil {
			return err
		}
		f, err := os.Create(o.save)
		if err != nil {
			return err
		}
		if err := errors.Join(report.WriteJSON(f), f.Close()); err != nil {
			return err
		}
	}
	if o.plots != "" {
		names, err := report.WritePlots(o.plots)
		if err != nil {
			return err
		}
		a.note("plots in %s: %s", o.plots, strings.Join(names, ", "))
	}
	if before == nil {
		return nil
	}
	changes := bench.Compare(before, report)
	if !a.json {
		if err := bench.WriteChanges(a.out.W, changes); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.Worse {
			what := c.Ratio.Workload
			if c.Ratio.Against != "" {
				what += " against " + c.Ratio.Against
			}
			return fmt.Errorf("%s became %.2f times what it was: %w", what, c.Factor, errDiffers)
		}
	}
	return nil
}

func readReport(path string) (*bench.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := bench.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}

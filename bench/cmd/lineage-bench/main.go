// Command lineage-bench measures the store compared with other systems that keep histories. See the package bench.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/lineage-store/lineage/bench"
)

const usage = `Measures the store compared with other systems that keep histories: bare writes as the limit, the documented
SQL schema on SQLite and Postgres, and the TypeScript package @deepagents/context. All are measured in one run,
interleaved, and each states the durability of what it acknowledged. It creates its own stores and reads none of yours.

The default takes about ten minutes, Postgres and archives included. --sizes 10,1k --store-messages 100k takes a
few. A store of ten million messages (--workloads store --store-messages 10M --systems lineage) takes 15 minutes
and 8 GB of disk; free space is checked first. Everything created is removed, also when the run is interrupted.

Exit codes: 0 done, 1 failed, 2 wrong usage, 8 something became worse than in --check, 130 interrupted.

  lineage-bench --workloads history --sizes 10 --rounds 3 --systems lineage,write
  lineage-bench --workloads length --sizes 10 --rounds 3 --systems lineage --goals --json
  lineage-bench --workloads store --store-messages 20k --systems lineage --rounds 3
  lineage-bench --list

Flags:
`

// errWorse is returned when a ratio became worse than in an earlier run.
var errWorse = errors.New("worse than the earlier run")

type options struct {
	config bench.Config
	goals  bool
	json   bool
	list   bool
	plots  string
	save   string
	check  string
}

func (o *options) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("lineage-bench", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringSliceVar(&o.config.Workloads, "workloads", nil, "what to measure (default all; --list names them)")
	f.StringSliceVar(&o.config.Systems, "systems", nil, "what to compare: "+strings.Join(bench.Systems(), ", ")+" (default all that can run)")
	f.Var(countsFlag{&o.config.Sizes}, "sizes", "lengths of history (default 10,1k,100k)")
	f.IntVar(&o.config.Rounds, "rounds", 0, "number of rounds of each measurement (default 7)")
	f.IntVar(&o.config.MessageBytes, "message-bytes", 0, "size of a message (default 500)")
	f.Var(countFlag{&o.config.StoreMessages}, "store-messages", "messages in the large store (default 1M)")
	f.Var(countFlag{&o.config.Forks}, "forks", "largest number of forks of one place, and of branches and threads (default 100k)")
	f.IntVar(&o.config.Programs, "programs", 0, "number of short programs on a Postgres server, 200 a minute (default 100)")
	f.StringVar(&o.config.Program, "program", "", "the program lineage, for the workload commands")
	f.StringSliceVar(&o.config.Commands, "commands", nil, "commands of that workload, by the beginning of their names (default all)")
	f.StringSliceVar(&o.config.Archives, "archive", nil, "file or folder of conversations to import and deduplicate")
	f.StringVar(&o.config.Postgres, "postgres", "", "address of a Postgres server to compare with, or private for one that is started for the run")
	f.StringVar(&o.config.NodeModules, "deepagents", "", "folder whose node_modules has @deepagents/context")
	f.StringVar(&o.config.Dir, "dir", "", "where to create stores (default the folder for temporary files)")
	f.Uint64Var(&o.config.Seed, "seed", 0, "seed of the generated messages (default 1)")
	f.BoolVar(&o.goals, "goals", false, "print only the goals and whether they are met")
	f.BoolVar(&o.json, "json", false, "print records as JSON lines")
	f.BoolVar(&o.list, "list", false, "list the workloads and measure nothing")
	f.StringVar(&o.plots, "plots", "", "write plots as SVG into a folder")
	f.StringVar(&o.save, "save", "", "write the results as JSON lines to a file")
	f.StringVar(&o.check, "check", "", "compare with the results that --save wrote; exits with 8 if something became worse")
	f.Usage = func() { fmt.Fprint(os.Stderr, usage, f.FlagUsages()) }
	return f
}

func main() {
	bench.Process()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(exitCode(ctx, run(ctx, os.Args[1:])))
}

// exitCode reports an error and returns the code for it.
func exitCode(ctx context.Context, err error) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "lineage-bench:", err)
	switch {
	case errors.Is(err, bench.ErrConfig):
		return 2
	case errors.Is(err, errWorse):
		return 8
	case ctx.Err() != nil:
		return 130
	}
	return 1
}

func run(ctx context.Context, args []string) error {
	var o options
	f := o.flags()
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", bench.ErrConfig, err)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", bench.ErrConfig, f.Arg(0))
	}
	if o.list {
		return listWorkloads(os.Stdout, o.json)
	}
	var before *bench.Report
	if o.check != "" {
		var err error
		if before, err = readReport(o.check); err != nil {
			return err
		}
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		o.config.Progress = func(what string) { fmt.Fprintf(os.Stderr, "\r\x1b[Kmeasuring  %s", what) }
	}
	report, err := bench.Run(ctx, o.config)
	if o.config.Progress != nil {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	if report == nil {
		return err
	}
	// Rows measured before a failure are printed too.
	return errors.Join(err, o.print(os.Stdout, report), o.keep(report), o.compare(os.Stdout, before, report))
}

func listWorkloads(w io.Writer, asJSON bool) error {
	for _, name := range bench.Workloads() {
		var err error
		if asJSON {
			err = json.NewEncoder(w).Encode(struct {
				Type     string `json:"type"`
				Name     string `json:"name"`
				Measures string `json:"measures"`
			}{"workload", name, bench.Describe(name)})
		} else {
			_, err = fmt.Fprintf(w, "%-10s %s\n", name, bench.Describe(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *options) print(w io.Writer, report *bench.Report) error {
	if o.goals {
		// A report of its goals only, in either form.
		report = &bench.Report{Environment: report.Environment, Goals: report.Goals}
	}
	switch {
	case o.json:
		return report.WriteJSON(w)
	case o.goals:
		return report.WriteGoals(w)
	}
	return report.WriteTable(w)
}

// keep writes the files that were asked for.
func (o *options) keep(report *bench.Report) error {
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
	if o.plots == "" {
		return nil
	}
	names, err := report.WritePlots(o.plots)
	if err == nil {
		fmt.Fprintf(os.Stderr, "plots in %s: %s\n", o.plots, strings.Join(names, ", "))
	}
	return err
}

// compare prints how the ratios changed since an earlier run.
func (o *options) compare(w io.Writer, before, report *bench.Report) error {
	if before == nil {
		return nil
	}
	changes := bench.Compare(before, report)
	if !o.json {
		if err := bench.WriteChanges(w, changes); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.Worse {
			what := c.Ratio.Workload
			if c.Ratio.Against != "" {
				what += " against " + c.Ratio.Against
			}
			return fmt.Errorf("%s became %.2f times as large: %w", what, c.Factor, errWorse)
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

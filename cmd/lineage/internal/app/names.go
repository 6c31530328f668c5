package app

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
)

// CheckArguments makes a command check the number of its arguments, and refuse empty names. Without a name, commands
// work on the active branch or the current thread. That is not what a script with an unset variable intends.
func CheckArguments(c *cobra.Command) {
	fits := c.Args
	if fits == nil {
		fits = cobra.ArbitraryArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		switch err := fits(c, args); {
		case err == nil:
		case len(c.ValidArgs) > 0 || c.HasSubCommands():
			return err
		default:
			return Usagef("%s: the usage is '%s %s'", amount.Plural(len(args), "argument"), c.Parent().CommandPath(), c.Use)
		}
		if err := namesInFlags(c); err != nil {
			return err
		}
		return namesInArguments(c, args)
	}
}

// namesInFlags returns an error for an empty name in a flag.
func namesInFlags(c *cobra.Command) (err error) {
	naming := []string{"store", "thread", "in", "from", "at", "into", "after", "branch", "output"}
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(naming, f.Name) && f.Value.String() == "" {
			err = EmptyName("--" + f.Name)
		}
	})
	return err
}

// namesInArguments returns an error for an empty name in the arguments. Texts may be empty. append, whose single
// argument is the text, checks by itself.
func namesInArguments(c *cobra.Command, args []string) error {
	words := strings.Fields(c.Use)[1:]
	if len(words) == 0 || c.Name() == "append" {
		return nil
	}
	for i, arg := range args {
		word := strings.Trim(words[min(i, len(words)-1)], "[].")
		if arg == "" && word != "TEXT" && word != "QUERY" {
			return EmptyName(word)
		}
	}
	return nil
}

// NewName returns an error if the name of a branch or checkpoint could be read as a position.
func NewName(name string) error {
	if err := refs.CheckName(name); err != nil {
		return &UsageError{Err: err}
	}
	return nil
}

// EmptyName returns the error for an empty name.
func EmptyName(what string) error {
	return Hint(Usagef("%s: the name is empty", what), "it may come from a variable that is not set; the active branch is written @")
}

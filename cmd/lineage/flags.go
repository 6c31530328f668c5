package main

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// flagFailure explains what is wrong with the value of a flag.
func flagFailure(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return &usageError{err}
	}
	name, value := wrong.GetFlag().Name, wrong.GetValue()
	if errors.Is(err, strconv.ErrRange) {
		return usagef("--%s %q: the number is too large", name, value)
	}
	switch wrong.GetFlag().Value.Type() {
	case "uint64":
		return usagef("--%s %q: it is a whole number, and not below 0", name, value)
	case "int":
		return usagef("--%s %q: it is a whole number", name, value)
	case "duration":
		return usagef("--%s %q: it is a time with its unit, such as 3s or 1m30s", name, value)
	case "bool":
		return usagef("--%s %q: it is true or false", name, value)
	}
	return &usageError{err}
}

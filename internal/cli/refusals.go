package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A user of flags does not know the library's options, nor how Go reads a number. A
// refused value is named here as it was given.

// flagOf is the flag that sets an option of the library or the simulator.
var flagOf = map[string]string{
	"WithTTL":          "ttl",
	"WithNodeTimeout":  "node-timeout",
	"WithRestartGuard": "restart-guard",
	"WithGroup":        "group",
	"Metadata":         "metadata",
	"AtLeast":          "at-least",
	"TTL":              "ttl",
	"Nodes":            "nodes",
	"Clients":          "clients",
	"Duration":         "duration",
	"Transport":        "transport",
}

// refusedOption is how an error begins that refuses an option: its name, and its value
// in Go's way.
var refusedOption = regexp.MustCompile(`^(?:redlock|simulate): ([A-Z][A-Za-z]+)(?:\(("(?:[^"\\]|\\.)*"|[^()]*)\))?`)

// Refusal is the error of a command line whose options are refused. Other flags go
// before those of flagOf: a command may set an option by another one.
func Refusal(err error, other map[string]string) error {
	if text := inFlags(err.Error(), other); text != err.Error() {
		err = errors.New(text)
	}
	return &Exit{ExitUsage, err} // that of several addresses is printed line by line
}

// inFlags puts the flag that was given in the place of an option.
func inFlags(text string, other map[string]string) string {
	if m := refusedOption.FindStringSubmatch(text); m != nil {
		if flag := cmp.Or(other[m[1]], flagOf[m[1]]); flag != "" {
			text = strings.TrimRight("--"+flag+" "+m[2], " ") + strings.TrimPrefix(text, m[0])
		}
	}
	return strings.ReplaceAll(text, "(see WithRestartGuard)", "(see --restart-guard)")
}

// refusedFlag is the error of a flag that cannot be read, by whatever name it was given.
func refusedFlag(origin string, err error) error {
	wrong := new(pflag.InvalidValueError)
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return fmt.Errorf("%s %q: %s", origin, wrong.GetValue(), allowed(wrong))
}

// allowed says what a flag can be.
func allowed(wrong *pflag.InvalidValueError) string {
	if cause := wrong.Unwrap().Error(); strings.HasPrefix(cause, "must ") {
		return cause // a flag of ours
	}
	switch wrong.GetFlag().Value.Type() {
	case "bool":
		return "must be true or false"
	case "int":
		return "must be a whole number"
	case "uint64":
		return "must be a whole number that is not negative"
	case "duration":
		return "must be a duration such as 90s or 1h30m"
	}
	return wrong.Unwrap().Error()
}

// refuseFlags has cobra say so, too.
func refuseFlags(root *cobra.Command) {
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong := new(pflag.InvalidValueError); errors.As(err, &wrong) {
			return refusedFlag("--"+wrong.GetFlag().Name, err)
		}
		if unknown := new(pflag.NotExistError); errors.As(err, &unknown) {
			if meant := nearest(unknown.GetSpecifiedName(), flagNames(cmd)); meant != "" {
				return fmt.Errorf("%w; did you mean --%s?", err, meant)
			}
		}
		return err
	})
}

// flagNames are the flags of a command that help shows.
func flagNames(cmd *cobra.Command) (names []string) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// OneArgument is the check of a command that takes one argument, such as the name of
// the lock.
func OneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing: %s", what, cmd.UseLine())
		}
		return AtMostOne(what)(cmd, args)
	}
}

// AtMostOne is the check of a command that takes one argument or none.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s is one argument, and %d were given: %s", what, len(args), cmd.UseLine())
		}
		return nil
	}
}

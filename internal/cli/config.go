package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A flag that the command line does not give is taken from the environment, and if it
// is not there, from the configuration file: --node-timeout is REDLOCK_NODE_TIMEOUT
// and node-timeout.

// configFlag names the configuration file.
const configFlag = "config"

// OnlyGiven marks flags that are taken from the command line alone.
const OnlyGiven = "redlock_only_given"

// configured marks flags that the environment or the file has set.
const configured = "redlock_configured"

const AboutConfiguration = `Every flag can also be set in the environment and in a configuration file:
--node-timeout is REDLOCK_NODE_TIMEOUT, and node-timeout in the file. The
command line goes first, then the environment, then the file. The file is YAML;
names at the top are for every command, those below the name of a command for
that one:

  nodes: [a:6379, b:6379, c:6379, d:6379, e:6379]
  password-file: /etc/redlock/password
  run:
    ttl: 1m

It is given by --config or REDLOCK_CONFIG; else it is redlock/config.yaml in
$XDG_CONFIG_HOME (~/.config).

A variable that looks like a misspelt one is named on the standard error.

Only the command line sets --force, --yes, --regroup, --over, --names and
--value.`

// AddConfiguration has the commands of root take flags from the environment and from a
// file.
func AddConfiguration(root *cobra.Command) {
	root.PersistentFlags().String(configFlag, "", "the configuration `file`")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Hidden {
			warnOfMisspelt(cmd.ErrOrStderr(), root)
		}
		return Configure(cmd)
	}
	root.AddCommand(&cobra.Command{Use: "configuration", Short: "Flags in the environment and in a file", Long: AboutConfiguration})
}

// Configure fills in what the command line leaves open.
func Configure(cmd *cobra.Command) error {
	set := func(name, value, origin string) error {
		if err := cmd.Flags().Set(name, value); err != nil {
			return &Exit{ExitUsage, refusedFlag(origin, err)}
		}
		return cmd.Flags().SetAnnotation(name, configured, []string{"true"})
	}
	file, err := readConfiguration(cmd)
	if err != nil {
		return err
	}
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || failed != nil || f.Annotations[OnlyGiven] != nil || f.Name == configFlag || f.Name == "help" {
			return
		}
		if value := os.Getenv(variable(f.Name)); value != "" {
			failed = set(f.Name, value, variable(f.Name))
		} else if s, ok := file.find(cmd.Name(), f.Name); ok {
			failed = set(f.Name, s.value, s.origin)
		}
	})
	return failed
}

// variable is the name of a flag in the environment.
func variable(flag string) string {
	return "REDLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// These variables tell a command what lock it runs under.
const (
	NameEnv  = "REDLOCK_NAME"
	ValueEnv = "REDLOCK_VALUE"
	TokenEnv = "REDLOCK_TOKEN" // unless --token-env gives another name
)

// setting is a value in the configuration file.
type setting struct {
	value  string
	origin string // file and line
}

// configuration is what the file says: by flag, and below the names of commands.
type configuration map[string]map[string]setting

func (c configuration) find(command, flag string) (setting, bool) {
	if s, ok := c[command][flag]; ok {
		return s, true
	}
	s, ok := c[""][flag]
	return s, ok
}

// readConfiguration reads the file that is given, or the usual one if there is
// one.
func readConfiguration(cmd *cobra.Command) (configuration, error) {
	path, given := cmd.Flags().Lookup(configFlag).Value.String(), true
	if path == "" {
		path = os.Getenv(variable(configFlag))
	}
	if path == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return nil, nil // without a home, no file
		}
		path, given = filepath.Join(folder, "redlock", "config.yaml"), false
	}
	content, err := os.ReadFile(path)
	switch {
	case !given && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Usage("configuration: %w", err)
	}
	return parseConfiguration(path, content, cmd.Root())
}

func parseConfiguration(path string, content []byte, root *cobra.Command) (configuration, error) {
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(content, &top); err != nil {
		return nil, Usage("%s: not a YAML mapping of flags to values: %w", path, err)
	}
	c := configuration{"": {}}
	for name, value := range top {
		if value.Kind != yaml.MappingNode {
			if err := c.add(path, "", name, &value, known(root, "", name), hint(root, name)); err != nil {
				return nil, err
			}
			continue
		}
		if !isCommand(root, name) {
			what := "unknown command or flag"
			if slices.Contains(settable(root), name) {
				what = "must be a value or a list of values"
			}
			return nil, Usage("%s:%d: %s: %s%s", path, value.Line, name, what, hint(root, name))
		}
		var below map[string]yaml.Node
		if err := value.Decode(&below); err != nil {
			return nil, Usage("%s:%d: %s: %w", path, value.Line, name, err)
		}
		c[name] = map[string]setting{}
		for flag, value := range below {
			if err := c.add(path, name, flag, &value, known(root, name, flag), hint(root, flag)); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// add takes a value over. It is not in any error: it may be a secret.
func (c configuration) add(path, command, flag string, value *yaml.Node, known bool, meant string) error {
	where := fmt.Sprintf("%s:%d", path, value.Line)
	if !known {
		return Usage("%s: %s: no flag%s, or only the command line sets it%s", where, flag, of(command), meant)
	}
	text := value.Value
	switch value.Kind {
	case yaml.ScalarNode:
	case yaml.SequenceNode:
		var list []string
		if err := value.Decode(&list); err != nil {
			return Usage("%s: %s: must be a value or a list of values", where, flag)
		}
		text = strings.Join(list, ",")
	default:
		return Usage("%s: %s: must be a value or a list of values", where, flag)
	}
	c[command][flag] = setting{text, where + ": " + flag}
	return nil
}

func isCommand(root *cobra.Command, name string) bool {
	return slices.ContainsFunc(root.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == name })
}

func of(command string) string {
	if command == "" {
		return " of any command"
	}
	return " of redlock " + command
}

// known reports whether the file may set the flag of a command, or of any if it is
// empty. A value that no command would read is a mistake that must be told.
func known(root *cobra.Command, command, flag string) bool {
	for _, cmd := range root.Commands() {
		if command != "" && cmd.Name() != command {
			continue
		}
		if f := cmd.Flags().Lookup(flag); f != nil && f.Annotations[OnlyGiven] == nil {
			return true
		}
	}
	return false
}

// hint names the flag that an unknown one probably stands for.
func hint(root *cobra.Command, flag string) string {
	if meant := nearest(flag, settable(root)); meant != "" && meant != flag {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// FromCommandLine keeps the environment and the file from setting a flag.
func FromCommandLine(flags *pflag.FlagSet, name string) {
	flags.SetAnnotation(name, OnlyGiven, []string{"true"})
}

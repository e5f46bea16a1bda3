package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Examples implements exampler.
func (*completionCmd) Examples() string {
	return "  source <(highwater completion bash)\n" +
		"  highwater completion zsh > ~/.zfunc/_highwater\n" +
		"  highwater completion fish > ~/.config/fish/completions/highwater.fish\n"
}

// Run implements the subcommand.
func (c *completionCmd) Run(ui *tui, kctx *kong.Context) error {
	words := completionWords(kctx.Model)
	if ui.json {
		return ui.printJSON(map[string]any{"shell": c.Shell, "commands": words})
	}
	switch c.Shell {
	case "bash":
		fmt.Fprint(ui.out, bashCompletion(words))
	case "zsh":
		fmt.Fprint(ui.out, zshCompletion(words))
	case "fish":
		fmt.Fprint(ui.out, fishCompletion(words))
	}
	return nil
}

// commandWords is what can be completed after one command.
type commandWords struct {
	Name  string      `json:"name"`
	Help  string      `json:"help"`
	Flags []flagWords `json:"flags"`
}

type flagWords struct {
	Name   string   `json:"name"`
	Help   string   `json:"help"`
	Values []string `json:"values"` // nil for a truth value or free text
	Takes  bool     `json:"takes_value"`
}

func completionWords(app *kong.Application) []commandWords {
	var words []commandWords
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		cw := commandWords{Name: node.Name, Help: node.Help}
		for _, group := range node.AllFlags(true) {
			cw.addFlags(group)
		}
		words = append(words, cw)
	}
	return words
}

// addFlags adds each flag, and the --no- form of one that has it.
func (c *commandWords) addFlags(flags []*kong.Flag) {
	for _, f := range flags {
		c.Flags = append(c.Flags, flagWordsOf(f))
		if f.Tag.Negatable != "" {
			c.Flags = append(c.Flags,
				flagWords{Name: "--no-" + f.Name, Help: "Not: " + firstSentence(f.Help)})
		}
	}
}

func flagWordsOf(f *kong.Flag) flagWords {
	fw := flagWords{Name: "--" + f.Name, Help: firstSentence(f.Help), Takes: !f.IsBool()}
	if f.Enum != "" {
		fw.Values = strings.Split(f.Enum, ",")
	} else if strings.Contains(f.PlaceHolder, "|") {
		fw.Values = strings.Split(f.PlaceHolder, "|")
	}
	return fw
}

func firstSentence(s string) string {
	if i := strings.IndexAny(s, ".;:("); i > 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

func bashCompletion(words []commandWords) string {
	var b strings.Builder
	b.WriteString("# bash completion of highwater: source <(highwater completion bash)\n_highwater() {\n")
	b.WriteString("  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=${COMP_WORDS[1]}\n")
	fmt.Fprintf(&b, "  if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W %q -- \"$cur\")); return; fi\n",
		commandNames(words))
	b.WriteString("  case \"$cmd $prev\" in\n")
	for _, c := range words {
		for _, f := range c.Flags {
			if f.Values != nil {
				fmt.Fprintf(&b, "    %q) COMPREPLY=($(compgen -W %q -- \"$cur\")); return;;\n",
					c.Name+" "+f.Name, strings.Join(f.Values, " "))
			}
		}
	}
	b.WriteString("  esac\n  case \"$cur\" in -*) ;; *) COMPREPLY=($(compgen -f -- \"$cur\")); return;; esac\n")
	b.WriteString("  case \"$cmd\" in\n")
	for _, c := range words {
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W %q -- \"$cur\"));;\n", c.Name, flagNames(c))
	}
	b.WriteString("  esac\n}\ncomplete -o filenames -F _highwater highwater\n")
	return b.String()
}

func zshCompletion(words []commandWords) string {
	var b strings.Builder
	b.WriteString("#compdef highwater\n# zsh completion of highwater: put this file on $fpath as _highwater\n")
	b.WriteString("_highwater() {\n")
	b.WriteString("  if (( CURRENT == 2 )); then\n    local -a commands=(\n")
	for _, c := range words {
		fmt.Fprintf(&b, "      '%s:%s'\n", c.Name, zshText(c.Help))
	}
	b.WriteString("    )\n    _describe command commands; return\n  fi\n  case $words[2] in\n")
	for _, c := range words {
		fmt.Fprintf(&b, "    %s) _arguments '*:file:_files'", c.Name)
		for _, f := range c.Flags {
			fmt.Fprintf(&b, " \\\n      %s", zshFlag(f))
		}
		b.WriteString(";;\n")
	}
	b.WriteString("  esac\n}\n_highwater \"$@\"\n")
	return b.String()
}

func zshFlag(f flagWords) string {
	spec := fmt.Sprintf("%s[%s]", f.Name, zshText(f.Help))
	switch {
	case f.Values != nil:
		spec += ":value:(" + strings.Join(f.Values, " ") + ")"
	case f.Takes:
		spec += ":value:_files"
	}
	return "'" + spec + "'"
}

func zshText(s string) string {
	return strings.NewReplacer("'", "", "[", "", "]", "", ":", " ").Replace(s)
}

func fishCompletion(words []commandWords) string {
	var b strings.Builder
	b.WriteString("# fish completion of highwater\n")
	for _, c := range words {
		fmt.Fprintf(&b, "complete -c highwater -n __fish_use_subcommand -f -a %s -d '%s'\n", c.Name, zshText(c.Help))
		for _, f := range c.Flags {
			fmt.Fprintf(&b, "complete -c highwater -n '__fish_seen_subcommand_from %s' -l %s -d '%s'",
				c.Name, strings.TrimPrefix(f.Name, "--"), zshText(f.Help))
			if f.Takes {
				b.WriteString(" -r")
			}
			if f.Values != nil {
				fmt.Fprintf(&b, " -f -a '%s'", strings.Join(f.Values, " "))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func commandNames(words []commandWords) string {
	names := make([]string, len(words))
	for i, c := range words {
		names[i] = c.Name
	}
	return strings.Join(names, " ")
}

func flagNames(c commandWords) string {
	names := make([]string, len(c.Flags))
	for i, f := range c.Flags {
		names[i] = f.Name
	}
	return strings.Join(names, " ")
}

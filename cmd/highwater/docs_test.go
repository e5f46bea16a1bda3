package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"highwater/tracer/setting"
)

// TestExamplesParse: every command line shown in help, the README and docs/commands.md is one that
// the grammar takes.
func TestExamplesParse(t *testing.T) {
	texts := map[string]string{"highwater --help": rootExamples}
	for _, page := range []string{"../../README.md", "../../docs/commands.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	for _, node := range parserOf(t, &cli{}).Model.Children {
		if e, ok := node.Target.Addr().Interface().(exampler); ok {
			texts["highwater "+node.Name+" --help"] = e.Examples()
		} else if !node.Hidden {
			t.Errorf("highwater %s --help shows no example", node.Name)
		}
	}
	for where, text := range texts {
		for _, args := range commandLines(text) {
			if _, err := parserOf(t, &cli{}).Parse(args); err != nil && !errors.Is(err, errHelpPrinted) {
				t.Errorf("%s: highwater %s: %v", where, strings.Join(args, " "), err)
			}
		}
	}
}

func parserOf(t *testing.T, c *cli) *kong.Kong {
	t.Helper()
	parser, err := newParser(c, &tui{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// exampleLine is an indented or prompted line that runs the command: variables, the path to it, its
// arguments.
var exampleLine = regexp.MustCompile(`(?m)^(?:    |  |\$ )(?:\$ )?(?:[A-Z_]+=\S+ )*(?:source <\()?(?:bin/)?highwater ([a-z][^|&>)\n]*)`)

func commandLines(text string) (lines [][]string) {
	for _, m := range exampleLine.FindAllStringSubmatch(text, -1) {
		var args []string
		for _, a := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(m[1], -1) {
			args = append(args, strings.Trim(a, "'"))
		}
		lines = append(lines, args)
	}
	return lines
}

func TestCommandLines(t *testing.T) {
	got := commandLines("    highwater recover x --reason 'a b'\n  A_B=1 highwater info y | jq .\n$ bin/highwater demo\nsee `highwater x`\n")
	if fmt.Sprint(got) != "[[recover x --reason a b] [info y] [demo]]" {
		t.Errorf("got %q", got)
	}
}

// TestSettingsPage keeps the table of docs/commands.md equal to tracer/setting; -update writes it.
func TestSettingsPage(t *testing.T) {
	const page, begin, end = "../../docs/commands.md", "writes it -->\n", "<!-- end of settings -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost its settings markers", page)
	}
	want := before + begin + settingsTable() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the settings as they are: run go test ./cmd/highwater -run TestSettingsPage -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| setting | values | default | replay varies it | meaning |\n|---|---|---|---|---|\n")
	for _, s := range setting.Table() {
		varies := ""
		if s.Replay {
			varies = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", s.Name, settingValues(s), s.Default, varies, s.Doc)
	}
	b.WriteString("\n")
	return b.String()
}

func settingValues(s setting.Setting) string {
	var values string
	switch s.Kind {
	case setting.Int:
		values = fmt.Sprintf("%d to %d", s.Min, s.Max)
	case setting.Bytes:
		values = "bytes, such as 512MiB"
	case setting.Word:
		values = strings.Join(s.Words, ", ")
	case setting.Bool:
		values = "true, false"
	case setting.Uint:
		values = "unsigned, 64 bits"
	default:
		values = "text"
	}
	if s.Unbounded {
		values += ", unbounded"
	}
	if s.Off != "" {
		values += ", " + s.Off
	}
	return values
}

package oom

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readCase reads a case of testdata/cases.
func readCase(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readText(t testing.TB, text string) *Report {
	t.Helper()
	r := NewReader()
	if err := r.Read("text", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return r.Report()
}

// shapes are what happens to a report on its way to whoever asks. Each takes the lines of a report that
// has no prefix, as the kernel prints it.
var shapes = []struct {
	name string
	of   func(lines []string) string
}{
	{"bare", joinLines},
	{"CRLF", func(l []string) string { return strings.Join(l, "\r\n") + "\r\n" }},
	{"boot stamp", each(func(i int, s string) string { return fmt.Sprintf("[%5d.%06d] %s", 900+i/50, i%50, s) })},
	{"boot stamp with caller", each(func(i int, s string) string { return fmt.Sprintf("[%5d.%06d][ T%d] %s", 900, i, 4711, s) })},
	{"priority", each(func(i int, s string) string { return fmt.Sprintf("<4>[%5d.%06d] %s", 900, i, s) })},
	{"dmesg -x", each(func(i int, s string) string { return fmt.Sprintf("kern  :warn  : [%5d.%06d] %s", 900, i, s) })},
	{"dmesg -T", each(func(_ int, s string) string { return "[Mon Jan 26 01:49:41 2026] " + s })},
	{"dmesg -T in French", each(func(_ int, s string) string { return "[mar. janv. 27 01:49:41 2026] " + s })},
	{"dmesg -T in Japanese", each(func(_ int, s string) string { return "[月  1月 26 01:49:41 2026] " + s })},
	{"dmesg iso", each(func(i int, s string) string { return fmt.Sprintf("2024-04-29T14:55:41,%06d+02:00 %s", i, s) })},
	{"syslog", each(func(i int, s string) string {
		return fmt.Sprintf("Sep  7 15:49:31 node-7 kernel: [%d.%06d] %s", 1731318, i, s)
	})},
	{"syslog without boot stamp", each(func(_ int, s string) string { return "Sep  7 15:49:31 node-7 kernel: " + s })},
	{"rsyslog high precision", each(func(i int, s string) string {
		return fmt.Sprintf("2024-04-29T14:55:41.%06d+02:00 node-7 kernel: %s", i, s)
	})},
	{"journal short-iso", each(func(_ int, s string) string { return "2024-04-29T14:55:41+0200 node-7 kernel: " + s })},
	{"journal short-full", each(func(_ int, s string) string { return "Mon 2024-04-29 14:55:41 CEST node-7 kernel: " + s })},
	{"journal short-unix", each(func(i int, s string) string { return fmt.Sprintf("1714395341.%06d node-7 kernel: %s", i, s) })},
	{"US dates", each(func(_ int, s string) string { return "9/29/2020, 3:49:31\u202fPM node-7 kernel: " + s })},
	{"dates that can be two", each(func(_ int, s string) string { return "[07/09/2020 15:49:31] " + s })},
	{"journal json", each(journalJSON)},
	{"docker json-file", each(func(_ int, s string) string {
		b, _ := json.Marshal(map[string]string{"log": s + "\n", "stream": "stderr", "time": "2024-04-29T12:55:41.678628Z"})
		return string(b)
	})},
	{"container runtime", each(func(i int, s string) string { return fmt.Sprintf("2024-04-29T14:55:41.%09dZ stdout F %s", i, s) })},
	{"kubectl --prefix", each(func(_ int, s string) string { return "[pod/node-debug-x/dmesg] " + s })},
	{"compose", each(func(_ int, s string) string { return "node-log_1  | " + s })},
	{"kmsg", each(func(i int, s string) string { return fmt.Sprintf("4,%d,%d,-;%s", 1000+i, 900000000+i, s) })},
	{"mail", each(func(_ int, s string) string { return "> > " + s })},
	{"HTML", func(l []string) string { return "<pre><code>" + html.EscapeString(joinLines(l)) + "</code></pre>" }},
	{"HTML breaks", func(l []string) string {
		var out []string
		for _, s := range l {
			out = append(out, html.EscapeString(s))
		}
		return strings.Join(out, "<br/>")
	}},
	{"colours", each(func(i int, s string) string { return fmt.Sprintf("\x1b[32m[%5d.%06d] \x1b[0m%s", 900, i, s) })},
	{"CSV", func(l []string) string {
		var out strings.Builder
		out.WriteString("timestamp,host,message\n")
		for i, s := range l {
			fmt.Fprintf(&out, "\"2024-04-29T14:55:41.%06dZ\",\"node-7\",\"kernel: %s\"\n", i, s)
		}
		return out.String()
	}},
	{"CSV without quotes, newest first", func(l []string) string {
		var out []string
		for i, s := range l {
			out = append(out, fmt.Sprintf("2024-04-29T14:55:41.%06dZ,node-7,%s", i, s))
		}
		slices.Reverse(out)
		return joinLines(out)
	}},
	{"cut at 80 columns", func(l []string) string {
		var out []string
		for i, s := range l {
			s = fmt.Sprintf("[%5d.%06d] %s", 900, i, s)
			for len(s) > 80 {
				out, s = append(out, s[:80]), s[80:]
			}
			out = append(out, s)
		}
		return joinLines(out)
	}},
	{"grep -n", each(func(i int, s string) string { return fmt.Sprintf("%d:[%5d.%06d] %s", 17000+i, 900, i, s) })},
	{"grep of files", each(func(i int, s string) string {
		return fmt.Sprintf("/var/log/kern.log:Sep  7 15:49:31 node-7 kernel: [%5d.%06d] %s", 900, i, s)
	})},
	{"RFC 5424", each(func(_ int, s string) string {
		return "<4>1 2024-04-29T14:55:41.678Z node-7 kernel - - - " + s
	})},
	{"dmesg -H", func(l []string) string {
		l = slices.Clone(l)
		for i := range l {
			l[i] = fmt.Sprintf("[  +%d.000003] %s", i/50, l[i])
		}
		l[0] = "[Apr29 14:55] " + l[0][len("[  +0.000003] "):]
		return joinLines(l)
	}},
	{"entries of indented JSON", func(l []string) string {
		var list []any
		for i := len(l) - 1; i >= 0; i-- {
			list = append(list, map[string]any{
				"jsonPayload": map[string]string{"MESSAGE": l[i]},
				"timestamp":   fmt.Sprintf("2024-04-29T14:55:41.%06dZ", i),
			})
		}
		b, _ := json.MarshalIndent(list, "", "  ")
		return string(b)
	}},
	{"lost line ends", func(l []string) string {
		var out []string
		for i, s := range l {
			out = append(out, fmt.Sprintf("[%5d.%06d] %s", 900, i, s))
		}
		return strings.Join(out, " ")
	}},
	{"escaped line ends", func(l []string) string {
		var out []string
		for i, s := range l {
			out = append(out, fmt.Sprintf("[%5d.%06d] %s", 900, i, s))
		}
		return strings.Join(out, `\n`)
	}},
	{"indented", each(func(_ int, s string) string { return "        " + s })},
	{"newest first", func(l []string) string {
		l = slices.Clone(l)
		for i := range l {
			l[i] = fmt.Sprintf("2024-04-29T14:55:41.%06d+02:00 node-7 kernel: %s", i, l[i])
		}
		slices.Reverse(l)
		return joinLines(l)
	}},
	{"newest first, without stamps", func(l []string) string {
		l = slices.Clone(l)
		slices.Reverse(l)
		return joinLines(l)
	}},
	{"amid other lines", func(l []string) string {
		var out []string
		for i, s := range l {
			out = append(out, fmt.Sprintf("[%5d.%06d] %s", 900, 2*i, s))
			if i%3 == 0 {
				out = append(out, fmt.Sprintf("[%5d.%06d] eth0: link is up, 25000 Mbps", 900, 2*i+1))
			}
		}
		return joinLines(out)
	}},
	{"NULs and binary junk around", func(l []string) string {
		junk := "\x00\x00\x7fELF\x01\xff\xfe\n\x80\x81 \n"
		return junk + joinLines(l) + junk
	}},
	{"in a large log", func(l []string) string {
		filler := strings.Repeat("2024-04-29 14:55:40 INFO prover: partition done in 37 s, queue 3\n", 100_000)
		return filler + joinLines(l) + filler
	}},
}

func joinLines(l []string) string { return strings.Join(l, "\n") + "\n" }

func each(change func(int, string) string) func([]string) string {
	return func(l []string) string {
		out := make([]string, len(l))
		for i, s := range l {
			out[i] = change(i, s)
		}
		return joinLines(out)
	}
}

func journalJSON(i int, s string) string {
	b, _ := json.Marshal(map[string]any{
		"__REALTIME_TIMESTAMP": fmt.Sprint(1714395341000000 + i), "_HOSTNAME": "node-7",
		"SYSLOG_IDENTIFIER": "kernel", "_SOURCE_MONOTONIC_TIMESTAMP": fmt.Sprint(900000000 + i), "MESSAGE": s,
	})
	return string(b)
}

// bareLines are the lines of a case without their prefixes.
func bareLines(text string) []string {
	var out []string
	for _, s := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		_, msg := cutHead(s)
		out = append(out, msg)
	}
	return out
}

// core is what no shape may change.
func core(e *Event) string {
	c := *e
	c.Time, c.TimeKind, c.UptimeNS, c.Host, c.Input, c.Lines = "", "", nil, "", "", 0
	c.Missing = without(c.Missing, "time")
	c.Fetch, c.Notes = nil, nil
	c.Victims = slices.Clone(c.Victims)
	for i := range c.Victims {
		c.Victims[i].ReapedNS = nil
	}
	b, _ := json.Marshal(c)
	return string(b)
}

// TestShapes: a report gives the same answer whatever way it came.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(files) < 20 {
		t.Fatalf("cases: %v, %v", files, err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		lines := bareLines(readCase(t, name))
		want := readText(t, joinLines(lines))
		if len(want.Events) != 1 || want.Events[0].Source != SourceKernel {
			continue // shapes are of kernel reports, one a case
		}
		for _, shape := range shapes {
			if shape.name == "in a large log" && name != "A01-global-6.11-full.dmesg" {
				continue // megabytes each
			}
			if shape.name == "cut at 80 columns" && name == "page-allocation-failure.log" {
				continue // it has two breaks only, which are no pattern
			}
			if shape.name == "escaped line ends" && len(lines) < 3 {
				continue // one could be part of a name
			}
			t.Run(name+"/"+shape.name, func(t *testing.T) {
				got := readText(t, shape.of(lines))
				if len(got.Events) != 1 {
					t.Fatalf("%d events", len(got.Events))
				}
				if g, w := core(got.Events[0]), core(want.Events[0]); g != w {
					t.Errorf("got  %s\nwant %s", g, w)
				}
			})
		}
	}
}

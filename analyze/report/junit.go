package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"highwater/analyze"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes a report as JUnit XML: one test case an analyzer. It fails with the findings at or
// above failOn; those below stand in its output. An analyzer that could not look is skipped. An
// empty failOn fails none.
func JUnit(w io.Writer, r *analyze.Report, dir string, failOn analyze.Severity) error {
	suite := junitSuite{Name: "highwater analyze " + printable(dir)}
	for _, s := range r.Analyzers {
		c := junitCase{Name: s.Analyzer, Class: "highwater.analyze"}
		if s.Status == analyze.StatusNotApplicable {
			c.Skipped = &junitSkipped{printable(s.Why)}
			suite.Skipped++
		}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.ID == s.Analyzer {
				c.take(f, failOn)
			}
		}
		if c.Failure != nil {
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

// take puts a finding into its analyzer's case: the first one is the failure's message.
func (c *junitCase) take(f *analyze.Finding, failOn analyze.Severity) {
	text := printable(junitText(f))
	if failOn == "" || !f.Severity.AtLeast(failOn) {
		c.Out += text
		return
	}
	if c.Failure == nil {
		c.Failure = &junitFailure{Message: printable(f.Sentence), Type: string(f.Severity)}
	}
	c.Failure.Text += text
}

func junitText(f *analyze.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\n", f.Severity, f.Sentence)
	for _, n := range f.Evidence.Numbers {
		fmt.Fprintf(&b, "  %s: %s\n", Label(n.Name), Value(n.Name, n.Value))
	}
	fmt.Fprintf(&b, "remedy: %s\nrefuted by: %s\nmore: %s\n", f.Remedy, f.RefutedBy, f.Page)
	return b.String()
}

// printable leaves out what XML 1.0 cannot hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, s)
}

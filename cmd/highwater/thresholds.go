package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"highwater/analyze"
)

type threshold struct {
	name  string
	value float64
}

func parseThreshold(arg string) (threshold, error) {
	for i := range arg {
		if arg[i] != '=' {
			continue
		}
		value, err := strconv.ParseFloat(arg[i+1:], 64)
		if err == nil && i > 0 {
			return threshold{arg[:i], value}, nil
		}
	}
	return threshold{}, badInput("write it as --threshold queue-pileup.NAME=3", "--threshold %s: no name=number", arg)
}

// thresholdNames lists every threshold there is.
func thresholdNames() []string {
	var names []string
	for _, a := range analyze.All() {
		for _, t := range a.Doc().Thresholds {
			names = append(names, t.Name)
		}
	}
	return names
}

// checkThresholds refuses a name that no analyzer has, and lists those of the analyzer it names.
func checkThresholds(set map[string]float64) error {
	names := thresholdNames()
	for _, name := range sortedKeys(set) {
		if slices.Contains(names, name) {
			continue
		}
		analyzer, _, _ := strings.Cut(name, ".")
		of := slices.DeleteFunc(slices.Clone(names),
			func(n string) bool { return !strings.HasPrefix(n, analyzer+".") })
		if len(of) == 0 {
			return badInput("the analyzers are "+strings.Join(analyzerNames(), ", "),
				"threshold %s: no such analyzer", name)
		}
		return badInput("the thresholds of "+analyzer+" are "+strings.Join(of, ", "),
			"threshold %s: no such threshold", name)
	}
	return nil
}

// thresholdFile reads a TOML file of thresholds into set: a table an analyzer, a number a
// threshold. A name that no analyzer has is an error with file and line.
func thresholdFile(path string, set map[string]float64) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read thresholds: %w", err)
	}
	if info.IsDir() || info.Size() > maxConfigBytes {
		return fmt.Errorf("read thresholds %s: not a TOML file of at most 1 MiB", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read thresholds: %w", err)
	}
	return parseThresholds(path, string(text), set)
}

func parseThresholds(path, text string, set map[string]float64) error {
	var tables map[string]any
	if _, err := toml.Decode(text, &tables); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return fmt.Errorf("thresholds %s:%d: %s", path, pe.Position.Line, pe.Message)
		}
		return fmt.Errorf("thresholds %s: %w", path, err)
	}
	names := thresholdNames()
	for _, analyzer := range sortedKeys(tables) {
		table, ok := tables[analyzer].(map[string]any)
		if !ok {
			return fmt.Errorf("thresholds %s:%d: %s stands in no table of an analyzer", path,
				lineOf(text, analyzer), analyzer)
		}
		for _, name := range sortedKeys(table) {
			full := analyzer + "." + name
			if !slices.Contains(names, full) {
				return fmt.Errorf("thresholds %s:%d: no threshold %s", path, lineOf(text, name), full)
			}
			v, ok := number(table[name])
			if !ok {
				return fmt.Errorf("thresholds %s:%d: %s is not a number", path, lineOf(text, name),
					full)
			}
			set[full] = v
		}
	}
	return nil
}

// number is a TOML value as a number.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"

	"highwater/tracer/setting"
)

// maxConfigBytes bounds a config file: ours have a few hundred bytes.
const maxConfigBytes = 1 << 20

// applyFile sets what the TOML file says. It is strict: a key that is no setting, or a value of the
// wrong kind, is an error with file and line.
func applyFile(v *setting.Values, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read config file: %w", err)
	}
	if info.IsDir() || info.Size() > maxConfigBytes {
		return fmt.Errorf("read config file %s: not a TOML file of at most 1 MiB", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read config file: %w", err)
	}
	return applyTOML(v, path, string(text))
}

func applyTOML(v *setting.Values, path, text string) error {
	var keys map[string]any
	if _, err := toml.Decode(text, &keys); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return fmt.Errorf("config file %s:%d: %s", path, pe.Position.Line, pe.Message)
		}
		return fmt.Errorf("config file %s: %w", path, err)
	}
	var faults []error
	for _, name := range sortedKeys(keys) {
		if err := setFromFile(v, name, keys[name]); err != nil {
			faults = append(faults, fmt.Errorf("config file %s:%d: %w", path, lineOf(text, name), err))
		}
	}
	return errors.Join(faults...)
}

func setFromFile(v *setting.Values, name string, value any) error {
	if _, err := setting.Lookup(name); err != nil {
		return err
	}
	switch value.(type) {
	case int64, bool, string:
		return v.Set(name, fmt.Sprint(value), "file")
	}
	return fmt.Errorf("%s: a %T is not a number, a word or a truth value", name, value)
}

// lineOf finds the line of a top-level key: the decoder keeps no positions. 1 where the key is
// written in some other way.
func lineOf(text, key string) int {
	k := regexp.QuoteMeta(key)
	line := regexp.MustCompile(`(?m)^\s*["']?` + k + `["']?\s*[=.]|^\s*\[\s*` + k)
	at := line.FindStringIndex(text)
	if at == nil {
		return 1
	}
	return 1 + strings.Count(text[:at[1]], "\n")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/analyze/compare"
	"highwater/analyze/oom"
	"highwater/replay"
	"highwater/replay/corpus"
	"highwater/replay/models/published"
)

// TestEveryKeyIsDocumented: docs/json.md names every key that a --json object can hold, and every
// key is snake_case.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	base := sections["The five figures"] + sections["info"]
	for _, c := range []struct {
		name, where string
		typ         reflect.Type
	}{
		{"info", base, reflect.TypeFor[analyze.Summary]()},
		{"prove", base + sections["prove"], reflect.TypeFor[proveReport]()},
		{"analyze", base + sections["analyze"], reflect.TypeFor[analyze.Report]()},
		{"analyze --list", sections["analyze"], reflect.TypeFor[analyzerList]()},
		{"corpus", sections["corpus"], reflect.TypeFor[corpus.Matrix]()},
		{"replay", base + sections["replay"], reflect.TypeFor[replayReport]()},
		{"replay --list-models", sections["replay"], reflect.TypeFor[modelList]()},
		{"replay --published", sections["replay"], reflect.TypeFor[published.Summary]()},
		{"plan", base + sections["replay"] + sections["plan"], reflect.TypeFor[planReport]()},
		{"validate", sections["validate"], reflect.TypeFor[replay.Validation]()},
		{"diff", sections["diff"], reflect.TypeFor[compare.Diff]()},
		{"diff --power", sections["diff"], reflect.TypeFor[compare.Power]()},
		{"history", sections["history"], reflect.TypeFor[historyReport]()},
		{"oom", sections["oom"], reflect.TypeFor[oom.Report]()},
		{"recover", base + sections["recover"], reflect.TypeFor[recoverReport]()},
		{"export", sections["export"], reflect.TypeFor[exportReport]()},
		{"bench", sections["bench"], reflect.TypeFor[benchReport]()},
		{"demo", string(text), reflect.TypeFor[demoReport]()},
		{"version", sections["version"], reflect.TypeFor[versionInfo]()},
		{"completion", sections["completion"], reflect.TypeFor[commandWords]()},
	} {
		keys := map[string]bool{}
		collectKeys(c.typ, keys, map[reflect.Type]bool{})
		for _, key := range sortedKeys(keys) {
			if !strings.Contains(c.where, "`"+key+"`") {
				t.Errorf("highwater %s --json: key %s is not in docs/json.md", c.name, key)
			}
			if key != strings.ToLower(key) || strings.Contains(key, "-") {
				t.Errorf("highwater %s --json: key %s is not snake_case", c.name, key)
			}
		}
	}
}

func collectKeys(typ reflect.Type, keys map[string]bool, seen map[reflect.Type]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collectKeys(typ.Elem(), keys, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[typ] {
		return
	}
	seen[typ] = true
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if !f.Anonymous && name != "" {
			keys[name] = true
		}
		collectKeys(f.Type, keys, seen)
	}
}

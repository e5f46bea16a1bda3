package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"highwater": main, neverEnds: neverEnding})
}

// TestScripts runs testdata/*.txt: one script a behaviour. Beside testscript's own commands they
// have
//
//	status CODES highwater ARG…    the command exits with one of CODES (2, or 0,1)
//	json FILE PATH KIND|=VALUE     the value at PATH (a.b.0) is of KIND (number, string, null, bool, object, array) or equals VALUE
//	five FILE [PATH]               the five figures are numbers at top level, or under PATH
//	simulate DIR [NAME=VALUE…]     a sealed trace of the example pipeline, without proving
func TestScripts(t *testing.T) {
	keys := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HIGHWATER_CACHE_DIR", keys) // keys are set up once for all scripts
			env.Setenv("COLUMNS", "80")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": scriptStatus, "json": scriptJSON, "five": scriptFive, "simulate": scriptSimulate,
		},
	})
}

func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODES command arg…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(got)) {
		ts.Fatalf("%s exits with %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH KIND|=VALUE")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is not one JSON value: %v", args[0], err)
	}
	got, err := lookup(v, args[1])
	ts.Check(err)
	want, isValue := strings.CutPrefix(args[2], "=")
	is := jsonKind(got) == args[2]
	if isValue {
		is = fmt.Sprint(got) == want
	}
	if is == neg {
		ts.Fatalf("%s: %s is %v (%s), want %s", args[0], args[1], got, jsonKind(got), args[2])
	}
}

func lookup(v any, path string) (any, error) {
	for _, key := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[key]
			if !ok {
				return nil, fmt.Errorf("no key %q of %s", key, path)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(node) {
				return nil, fmt.Errorf("no element %q of %s (%d elements)", key, path, len(node))
			}
			v = node[i]
		default:
			return nil, fmt.Errorf("nothing below %q of %s", key, path)
		}
	}
	return v, nil
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func scriptFive(ts *testscript.TestScript, neg bool, args []string) {
	for _, key := range []string{"peak_rss_bytes", "peak_live_bytes", "makespan_ns", "proof_interval_ns", "rho"} {
		scriptJSON(ts, neg, []string{args[0], strings.Join(append(args[1:], key), "."), "number"})
	}
}

func scriptSimulate(ts *testscript.TestScript, neg bool, args []string) {
	set, err := parseAssignments("simulate", args[1:])
	ts.Check(err)
	ts.Check(simulateTrace(ts.MkAbs(args[0]), set))
}

// simulateTrace writes a trace of the example pipeline with the settings in set.
func simulateTrace(dir string, set map[string]string) error {
	m, err := pipeline.Example().Apply(set)
	if err != nil {
		return err
	}
	data, _, err := sim.Record(m, sim.Draw{Seed: 42, Bootstrap: true})
	if err != nil {
		return err
	}
	return trace.Write(dir, data)
}

// tempFile writes text to a file of its own.
func tempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

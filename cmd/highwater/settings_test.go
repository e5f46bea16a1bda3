package main

import (
	"bytes"
	"strings"
	"testing"

	"highwater/tracer/setting"
)

// TestPrecedence: flag beats environment beats file beats default, and the source says which it
// was.
func TestPrecedence(t *testing.T) {
	file := tempFile(t, "c.toml", "partition_workers = 3\ngpu_workers = 2\njobs = 5\nearly_free = false\nbyte_budget = \"2GiB\"\n")
	env := map[string]string{"HIGHWATER_PARTITION_WORKERS": "4", "HIGHWATER_GPU_WORKERS": "7"}
	l := layers{
		file:      file,
		lookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		flags:     map[string]string{"partition_workers": "5"},
	}
	v, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ name, text, source string }{
		{"partition_workers", "5", "flag"},
		{"gpu_workers", "7", "env"},
		{"jobs", "5", "file"},
		{"early_free", "false", "file"},
		{"byte_budget", "2147483648", "file"},
		{"log_size", "16", "default"},
	} {
		if got := v.Text(want.name); got != want.text || v.Source(want.name) != want.source {
			t.Errorf("%s = %s from %s, want %s from %s", want.name, got, v.Source(want.name), want.text, want.source)
		}
	}
}

// TestBadConfig: every fault is reported at once, each with its place.
func TestBadConfig(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"unknown key", "jobs = 1\npartition_worker = 2\n", `c.toml:2: unknown setting "partition_worker": did you mean "partition_workers"?`},
		{"bad value", "# x\n\npermit_release = \"never\"\n", `c.toml:3: permit_release: "never" is not one of synth_end`},
		{"wrong kind", "jobs = [1]\n", `c.toml:1: jobs: a []interface {} is not a number`},
		{"float", "jobs = 1.5\n", `c.toml:1: jobs: a float64 is not a number`},
		{"table", "\n[jobs]\nx = 1\n", `c.toml:2: jobs:`},
		{"not TOML", "jobs = = 1\n", `c.toml:1:`},
		{"out of range", "log_size = 99\n", `log_size: 99 is outside 10..27`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := applyFile(setting.Defaults(), tempFile(t, "c.toml", c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not contain %q", err, c.want)
			}
		})
	}
	none := func(string) (string, bool) { return "", false }
	_, err := layers{file: tempFile(t, "c.toml", "jobs = 0\n"), lookupEnv: none, flags: map[string]string{"gogc": "x"}}.merge()
	if err == nil || !strings.Contains(err.Error(), "jobs: 0 is outside") || !strings.Contains(err.Error(), "--gogc") {
		t.Errorf("error %v does not report both faults", err)
	}
}

// TestEverySettingHasAFlag: the grammar is made from the table, so what the table gains the command
// has.
func TestEverySettingHasAFlag(t *testing.T) {
	for _, s := range setting.Table() {
		text := s.Default
		args := []string{"prove", "--" + s.Flag() + "=" + text}
		var c cli
		parser, err := newParser(&c, &tui{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if got := c.Prove.given()[s.Name]; got != text {
			t.Errorf("%v gives %s = %q", args, s.Name, got)
		}
	}
}

func TestUnknownEnvironment(t *testing.T) {
	var stderr bytes.Buffer
	warnUnknownEnv(&tui{err: &stderr}, []string{"HIGHWATER_JOBS=1", "HIGHWATER_CONFIG=x", "PATH=/bin", "HIGHWATER_PARTITION_WORKER=3"})
	want := `highwater: warning: environment variable HIGHWATER_PARTITION_WORKER is ignored: unknown setting "partition_worker": did you mean "partition_workers"?` + "\n"
	if stderr.String() != want {
		t.Errorf("got %q, want %q", stderr.String(), want)
	}
}

// FuzzConfig: whatever a config file holds, it gives settings that are valid, or an error with the
// file's name.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "jobs = 3\n", "jobs = \"3\"\n", "[jobs]\n", "byte_budget = \"2GiB\"", "jobs.x = 1", "\"jo bs\" = 1",
		"jobs = 1e9", "jobs = 0x7fffffffffffffff", "seed = -1", "early_free = true", "x = [1, {y = 2}]", "\x00", "jobs = 1\njobs = 2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := setting.Defaults()
		if err := applyTOML(v, "c.toml", text); err != nil {
			if !strings.Contains(err.Error(), "c.toml") {
				t.Errorf("error does not name the file: %v", err)
			}
			return
		}
		for _, name := range v.Names() {
			s, err := setting.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if canon, err := s.Parse(v.Text(name)); err != nil || canon != v.Text(name) {
				t.Errorf("%s = %q from %s is not canonical: %q, %v", name, v.Text(name), v.Source(name), canon, err)
			}
		}
	})
}

//go:build cgo && linux

package device

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fake compiles testdata/fake.c with the definitions given.
func fake(t *testing.T, definitions ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), LibraryName)
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc" // cgo's own default
	}
	args := append([]string{"-shared", "-fPIC", "-o", out, "testdata/fake.c"}, definitions...)
	if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cc, err, text)
	}
	return out
}

// TestLoadErrors: every way in which a library cannot be had gives its own error, which names the
// file and says what to do.
func TestLoadErrors(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a library ", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "none.so")
	for _, c := range []struct {
		name, path string
		want       error
		says       string
	}{
		{"missing", missing, ErrMissing, "make native"},
		{"missing by name", "libhighwater_of_nobody.so", ErrMissing, "the system's loader"},
		{"no library", text, ErrBroken, "invalid ELF header"},
		{"older", fake(t, "-DVERSION=0"), ErrVersion, "implements version 0 of the interface, this program needs version 1"},
		{"newer", fake(t, "-DVERSION=7"), ErrVersion, "implements version 7"},
		{"hollow", fake(t, "-DHOLLOW"), ErrBroken, "it has no function hw_backend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Open(c.path)
			var load *LoadError
			if l != nil || !errors.Is(err, c.want) || !errors.As(err, &load) {
				t.Fatalf("opened %v, error %v, want %v", l, err, c.want)
			}
			if !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q lacks the path or %q", err, c.says)
			}
		})
	}
}

// TestFind: the environment's library is the only one tried; else the list of places is told.
func TestFind(t *testing.T) {
	path := fake(t)
	t.Setenv(LibraryEnv, path)
	l, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if l.Path() != path || l.Backend() != "fake" || l.BuildInfo() != "fake 1.0" {
		t.Errorf("found %q: %q, %q", l.Path(), l.Backend(), l.BuildInfo())
	}
	if l.Name(1) != "one" || l.Name(1) != "one" || l.Name(2) != "?" {
		t.Errorf("names %q, %q", l.Name(1), l.Name(2))
	}
	t.Setenv(LibraryEnv, path+".gone")
	if _, err := Find(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), ".gone") {
		t.Errorf("error %v, want that the library named is missing", err)
	}
}

// TestFindBeside: without the environment, the library next to the executable is taken.
func TestFindBeside(t *testing.T) {
	t.Setenv(LibraryEnv, "")
	places := beside()
	if len(places) != 2 {
		t.Fatalf("places %v", places)
	}
	if _, err := os.Stat(places[0]); err == nil {
		t.Fatalf("%s is in the way", places[0])
	}
	bytes, err := os.ReadFile(fake(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(places[0], bytes, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(places[0])
	if l, err := Find(); err != nil || l.Path() != places[0] {
		t.Errorf("found %v, %v, want %s", l, err, places[0])
	}
}

// TestNoDevice: a library without a driver, or without a device, says so in one error.
func TestNoDevice(t *testing.T) {
	for _, c := range []struct {
		name, define string
		want         Status
		says         string
	}{
		{"no driver", "-DSTATUS=2", NoDriver, "count devices: no GPU driver: as the test wants it"},
		{"no device", "-DSTATUS=3", NoDevice, "no such device: as the test wants it"},
		{"none", "-DCOUNT=0", NoDevice, "the driver knows none"},
		{"lost", "-DSTATUS=8", Lost, "device lost"},
		{"unknown", "-DSTATUS=99", Status(99), "status 99"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Open(fake(t, c.define))
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.Devices()
			var failed *Error
			if !errors.Is(err, c.want) || !errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
}

// TestDevices: the library under test describes its devices.
func TestDevices(t *testing.T) {
	infos, err := library(t).Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range infos {
		t.Logf("%+v", info)
		if info.Number != i || info.Name == "" || info.TotalBytes <= 0 {
			t.Errorf("device %d: %+v", i, info)
		}
	}
}

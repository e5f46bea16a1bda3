package device

import (
	"errors"
	"os"
	"path/filepath"
)

const (
	// LibraryEnv names the library to load; nothing else is tried then.
	LibraryEnv = "HIGHWATER_NATIVE"
	// LibraryName is the CUDA library's file name. The twin is taken only where LibraryEnv names it.
	LibraryName = "libhighwater_native.so"
)

// Find loads the library that the environment names; without one, that next to the executable, or
// in lib beside its folder; then where the system's loader looks. The error is a *LoadError.
func Find() (*Library, error) {
	if name := os.Getenv(LibraryEnv); name != "" {
		return Open(name)
	}
	var tried []string
	for _, path := range beside() {
		if _, err := os.Stat(path); err != nil {
			tried = append(tried, path)
			continue
		}
		return Open(path)
	}
	lib, err := Open(LibraryName)
	var load *LoadError
	if errors.As(err, &load) && errors.Is(load.Reason, ErrMissing) {
		load.Tried = append(tried, load.Tried...)
	}
	return lib, err
}

// beside lists the places that go with the executable.
func beside() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	folder := filepath.Dir(self)
	return []string{
		filepath.Join(folder, LibraryName),
		filepath.Join(filepath.Dir(folder), "lib", LibraryName),
	}
}

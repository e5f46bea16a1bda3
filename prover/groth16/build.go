package groth16

import (
	"context"

	"github.com/consensys/gnark/frontend"
)

// Compile compiles shape with gnark's frontend and moves the result into mmap memory (class system). It leaves garbage on the
// Go heap: compile in the set-up process, and load the system from the cache where memory is watched.
func Compile(ctx context.Context, env Env, shape frontend.Circuit) (*System, error) {
	panic("to be written")
}

// SetupOptions are the settings of a set-up.
type SetupOptions struct {
	Seed     uint64                  // of the toxic waste
	Threads  int                     // 0: one a CPU
	Progress func(done, total int64) // points computed so far, one caller at a time; may be nil
}

// Setup makes the keys of a system. Equal systems and seeds give equal keys.
func Setup(ctx context.Context, env Env, s *System, opts SetupOptions) (*Key, error) {
	panic("to be written")
}

// CacheID names the content of a cache file.
type CacheID struct {
	Circuit string
	LogSize int
	Seed    uint64
}

// FileName is the cache file's name: circuit, log size, seed and format version.
func (id CacheID) FileName() string { panic("to be written") }

// CacheError says what is wrong with a cache file: damaged, foreign, or of another version. Such a file is never used; build it anew.
type CacheError struct {
	Path   string
	Offset int64 // in bytes, -1 where it has none
	Reason string
}

// Error implements error.
func (e *CacheError) Error() string { panic("to be written") }

// SaveCache writes system and key to dir/id.FileName(), by rename, and returns the path.
func SaveCache(dir string, id CacheID, s *System, k *Key) (string, error) { panic("to be written") }

// LoadCache reads dir/id.FileName() straight into mmap memory. A file that does not exist is fs.ErrNotExist, one that
// cannot be trusted a *CacheError.
func LoadCache(ctx context.Context, env Env, dir string, id CacheID) (*System, *Key, error) {
	panic("to be written")
}

// NewCPU is the backend on the machine's CPUs by gnark-crypto. The key must outlive it.
func NewCPU(k *Key) Backend { panic("to be written") }

package groth16

import "context"

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

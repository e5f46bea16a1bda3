//go:build !linux

package hostmem

import "golang.org/x/sys/unix"

// remap without mremap: map anew, copy, unmap. Recording is for Linux; this keeps the package
// building elsewhere.
func remap(mem []byte, size int) ([]byte, error) {
	grown, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	copy(grown, mem)
	return grown, unix.Munmap(mem)
}

package hostmem

import "golang.org/x/sys/unix"

func remap(mem []byte, size int) ([]byte, error) {
	return unix.Mremap(mem, size, unix.MREMAP_MAYMOVE)
}

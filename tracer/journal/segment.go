package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// segment is one preallocated, mapped file of blocks.
type segment struct {
	number uint32
	path   string
	data   []byte // the whole file
	blocks int64
	next   atomic.Int64 // blocks claimed; may run past blocks
	open   atomic.Int64 // blocks not yet finished by a writer; 0: nobody will touch data again
}

// Space gives a new segment file its disk space. Tests put faults here.
type Space interface {
	Reserve(f *os.File, size int64) error
}

type diskSpace struct{}

func (diskSpace) Reserve(f *os.File, size int64) error { return reserve(f, size) }

func segmentName(number uint32) string { return fmt.Sprintf("%06d.seg", number) }

// createSegment makes, reserves and maps a segment file. Nothing is left behind on an error.
func createSegment(dir string, h *segmentHeader, space Space) (*segment, error) {
	path := filepath.Join(dir, segmentName(h.number))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create journal segment: %w", err)
	}
	defer f.Close()
	if err := space.Reserve(f, h.segBytes); err != nil {
		os.Remove(path)
		return nil, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(h.segBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("map journal segment %s: %w", path, err)
	}
	h.encode(data)
	s := &segment{number: h.number, path: path, data: data, blocks: (h.segBytes - headerBytes) / BlockBytes}
	s.open.Store(s.blocks)
	return s, nil
}

// claim takes the next free block, nil when there is none, and its byte offset.
func (s *segment) claim() (block []byte, off int64) {
	n := s.next.Add(1) - 1
	if n >= s.blocks {
		return nil, 0
	}
	off = headerBytes + n*BlockBytes
	return s.data[off : off+BlockBytes : off+BlockBytes], off
}

func (s *segment) unmap() {
	if s.data != nil {
		_ = unix.Munmap(s.data) // only fails on a bad range
		s.data = nil
	}
}

var zeros [256 << 10]byte // only read

func writeZeros(f *os.File, size int64) error {
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// chunk is one column of one row group, decoded: integers (booleans as 0 and 1, doubles as their
// bits) or texts. Nulls are Null, or "" for a text. Its slices are used again for the next row
// group.
type chunk struct {
	ints  []int64
	texts []string
}

// part is n rows of c from row first on.
func (c *chunk) part(first, n int) chunk {
	if c.texts != nil {
		return chunk{texts: c.texts[first : first+n]}
	}
	return chunk{ints: c.ints[first : first+n]}
}

func (c *chunk) len() int { return max(len(c.ints), len(c.texts)) }

// chunkReader decodes the columns of one table, one after another. It keeps its buffers.
type chunkReader struct {
	t     *tableFile
	zstd  *zstd.Decoder
	raw   []byte   // the chunk's bytes
	page  []byte   // a page, decompressed, padded
	index []uint32 // dictionary indexes of a page
	level []uint32 // definition levels of a page
	dense []int64  // a page's values without nulls
	words []string

	// of the chunk being read
	name     string
	meta     *format.ColumnMetaData
	optional bool
	dict     chunk
	hasDict  bool
}

func newChunkReader(t *tableFile) (*chunkReader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxPageBytes))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &chunkReader{t: t, zstd: z}, nil
}

func (r *chunkReader) close() { r.zstd.Close() }

// read decodes column l of a row group into out.
func (r *chunkReader) read(out *chunk, group *format.RowGroup, l *leaf, name string) error {
	rows := int(group.NumRows)
	r.name, r.meta, r.optional, r.hasDict = name, &group.Columns[l.index].MetaData, l.optional,
		false
	if l.typ == format.ByteArray {
		out.ints, out.texts = nil, resized(out.texts, rows)
	} else {
		out.ints, out.texts = resized(out.ints, rows), nil
	}
	begin, size := chunkPlace(r.meta)
	r.raw = resized(r.raw, int(size))
	if err := r.t.readAt(r.raw, begin); err != nil {
		return err
	}
	for pos, done := 0, 0; done < rows; {
		n, next, err := r.onePage(out, done, pos)
		if err != nil {
			return r.t.errorAt(begin+int64(pos), fmt.Sprintf("column %q", name), err)
		}
		pos, done = next, done+n
	}
	return nil
}

// onePage decodes the page at pos of the chunk into out from row done on. It gives the number of
// rows and where the next page is.
func (r *chunkReader) onePage(out *chunk, done, pos int) (rows, next int, err error) {
	n, err := scanThrift(r.raw[pos:])
	if err != nil {
		return 0, 0, errors.New("the page header makes no sense")
	}
	var h format.PageHeader
	if err := unmarshalThrift(r.raw[pos:pos+n], &h); err != nil {
		return 0, 0, fmt.Errorf("decode page header: %w", err)
	}
	pos += n
	if h.CompressedPageSize < 0 || int(h.CompressedPageSize) > len(r.raw)-pos ||
		h.UncompressedPageSize < 0 ||
		h.UncompressedPageSize > maxPageBytes {
		return 0, 0, fmt.Errorf("page of %d bytes, %d uncompressed, in %d", h.CompressedPageSize,
			h.UncompressedPageSize, len(r.raw)-pos)
	}
	next = pos + int(h.CompressedPageSize)
	body := r.raw[pos:next]
	if h.CRC != 0 && crc32.ChecksumIEEE(body) != uint32(h.CRC) {
		return 0, 0, errors.New("a page fails its checksum")
	}
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		err = r.dictionary(&h, body)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		rows, err = r.dataV2(out, done, &h, body)
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		rows, err = r.dataV1(out, done, &h, body)
	case h.Type != format.IndexPage:
		err = errors.New("a page of unknown type")
	}
	return rows, next, err
}

func (r *chunkReader) dictionary(h *format.PageHeader, body []byte) error {
	n := int(h.DictionaryPageHeader.V.NumValues)
	if n < 0 || n > maxGroupRows || r.hasDict {
		return fmt.Errorf("dictionary of %d values", n)
	}
	c, err := r.decompress(body, int(h.UncompressedPageSize), true)
	if err != nil {
		return err
	}
	r.hasDict = true
	if r.meta.Type == format.ByteArray {
		r.dict.texts = resized(r.dict.texts, n)
		return c.plainText(r.dict.texts)
	}
	r.dict.ints = resized(r.dict.ints, n)
	return r.plainInts(&c, r.dict.ints)
}

func (r *chunkReader) dataV2(out *chunk, done int, h *format.PageHeader, body []byte) (int, error) {
	v := &h.DataPageHeaderV2.V
	n, err := r.rowsLeft(out, done, v.NumValues)
	if err != nil {
		return 0, err
	}
	levels := int(v.DefinitionLevelsByteLength)
	if levels < 0 || levels > len(body) || v.RepetitionLevelsByteLength != 0 ||
		int(h.UncompressedPageSize) < levels {
		return 0, errPage
	}
	values := n
	if r.optional {
		lc := r.copied(body[:levels])
		if values, err = r.levels(&lc, n); err != nil {
			return 0, err
		}
	}
	compressed := !v.IsCompressed.Valid || v.IsCompressed.V
	c, err := r.decompress(body[levels:], int(h.UncompressedPageSize)-levels, compressed)
	if err != nil {
		return 0, err
	}
	return n, r.values(out.part(done, n), values, v.Encoding, &c)
}

func (r *chunkReader) dataV1(out *chunk, done int, h *format.PageHeader, body []byte) (int, error) {
	v := &h.DataPageHeader.V
	n, err := r.rowsLeft(out, done, v.NumValues)
	if err != nil {
		return 0, err
	}
	c, err := r.decompress(body, int(h.UncompressedPageSize), true)
	if err != nil {
		return 0, err
	}
	values := n
	if r.optional {
		at, err := c.take(4)
		if err != nil {
			return 0, err
		}
		size := uint64(binary.LittleEndian.Uint32(c.b[at:]))
		lc := c
		if _, err := c.take(size); err != nil {
			return 0, err
		}
		lc.end = c.pos
		if values, err = r.levels(&lc, n); err != nil {
			return 0, err
		}
	}
	return n, r.values(out.part(done, n), values, v.Encoding, &c)
}

func (r *chunkReader) rowsLeft(out *chunk, done int, claimed int32) (int, error) {
	left := out.len() - done
	if claimed < 0 || int(claimed) > left {
		return 0, fmt.Errorf("page of %d values where %d are left", claimed, left)
	}
	return int(claimed), nil
}

// levels decodes the definition levels of n rows and counts those that are not null.
func (r *chunkReader) levels(c *cursor, n int) (values int, err error) {
	r.level = resized(r.level, n)
	if err := c.hybrid(r.level, 1); err != nil {
		return 0, err
	}
	for _, l := range r.level {
		values += int(l & 1)
	}
	return values, nil
}

// decompress puts a page's bytes into r.page with padding behind.
func (r *chunkReader) decompress(body []byte, size int, compressed bool) (cursor, error) {
	if r.meta.Codec == format.Uncompressed || !compressed {
		return r.copied(body), nil
	}
	if cap(r.page) < size+decodePad {
		r.page = make([]byte, 0, size+decodePad)
	}
	if size == 0 && len(body) == 0 { // all null
		return r.copied(nil), nil
	}
	b, err := r.zstd.DecodeAll(body, r.page[:0:size])
	if err != nil {
		return cursor{}, fmt.Errorf("decompress: %w", err)
	}
	if len(b) != size {
		return cursor{}, fmt.Errorf("decompress: %d bytes where %d were said", len(b), size)
	}
	padded := r.page[:size+decodePad]
	clear(padded[size:])
	return newCursor(padded), nil
}

// copied pads bytes that are not compressed.
func (r *chunkReader) copied(body []byte) cursor {
	padded := make([]byte, len(body)+decodePad)
	copy(padded, body)
	return newCursor(padded)
}

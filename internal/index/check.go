package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
)

// bbolt trusts the pages above its leaves: a circular pointer would overflow the
// stack, and a page that is both free and in use would be overwritten. checkFile
// therefore checks them before bbolt uses them, and again after each transaction,
// which could transform damage that it met. It reads only branch pages, about one
// in a hundred; leaves have checksums of ours.
const (
	pageHeader   = 16
	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	metaLen      = 64
	maxDepth     = 32
	elementSize  = 16
	bucketFlag   = 1
	bucketHeader = 16
	// maxOverflow is the largest size of a branch page: bbolt puts at most four
	// keys into one if they are too large for a page.
	maxOverflow = 4 * (32<<10 + elementSize)
)

type boltMeta struct {
	pageSize   uint32
	root       uint64
	freelist   uint64
	highWater  uint64
	generation uint64
}

type checker struct {
	file *os.File
	size int64
	meta boltMeta
	used []uint64 // a bit for each page that a pointer or the free list refers to
	free *pages
}

// checkFile returns the free pages, or why a bbolt file is unsafe to use.
func checkFile(f *os.File) (*pages, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c := &checker{file: f, size: info.Size()}
	if err := c.findMeta(); err != nil {
		return nil, err
	}
	if c.meta.highWater > uint64(c.size)/uint64(c.meta.pageSize) {
		return nil, errors.New("file is cut short")
	}
	words := c.meta.highWater/64 + 1
	c.used = make([]uint64, words)
	c.free = &pages{size: uint64(c.meta.pageSize), end: c.meta.highWater, free: make([]uint64, words)}
	if err := c.bucket(c.meta.root); err != nil {
		return nil, err
	}
	return c.free, c.freelist()
}

// findMeta selects the newer of the two meta pages that are valid. The first one says where the second is; if it is
// damaged, each of the sizes of pages is tried.
func (c *checker) findMeta() error {
	sizes := []uint32{smallPage, uint32(os.Getpagesize())}
	found := false
	if first, ok := c.metaAt(0); ok && slices.Contains(sizes, first.pageSize) {
		c.meta, found = first, true
		sizes = []uint32{first.pageSize}
	}
	for _, size := range sizes {
		second, ok := c.metaAt(int64(size))
		if ok && second.pageSize == size && (!found || second.generation > c.meta.generation) {
			c.meta, found = second, true
		}
	}
	if !found {
		return errors.New("no valid meta page")
	}
	return nil
}

// metaAt reads the meta page at an offset. It returns false if that is not valid.
func (c *checker) metaAt(at int64) (meta boltMeta, ok bool) {
	b := make([]byte, pageHeader+metaLen)
	if _, err := c.file.ReadAt(b, at); err != nil {
		return meta, false
	}
	m := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:metaLen-8])
	if binary.NativeEndian.Uint32(m) != boltMagic || binary.NativeEndian.Uint32(m[4:]) != boltVersion ||
		sum.Sum64() != binary.NativeEndian.Uint64(m[metaLen-8:]) {
		return meta, false
	}
	return boltMeta{
		pageSize:   binary.NativeEndian.Uint32(m[8:]),
		root:       binary.NativeEndian.Uint64(m[16:]),
		freelist:   binary.NativeEndian.Uint64(m[32:]),
		highWater:  binary.NativeEndian.Uint64(m[40:]),
		generation: binary.NativeEndian.Uint64(m[48:]),
	}, true
}

// take marks a page as used and refuses one that already is.
func (c *checker) take(id uint64) error {
	if id < 2 || id >= c.meta.highWater {
		return fmt.Errorf("page %d is outside the file", id)
	}
	if c.used[id/64]&(1<<(id%64)) != 0 {
		return fmt.Errorf("page %d is used twice", id)
	}
	c.used[id/64] |= 1 << (id % 64)
	return nil
}

// page takes a page and reads it with its overflow, which must not exceed the
// given number of bytes.
func (c *checker) page(id uint64, most uint64) (b []byte, flags uint16, count int, err error) {
	if err := c.take(id); err != nil {
		return nil, 0, 0, err
	}
	size := uint64(c.meta.pageSize)
	b = make([]byte, size)
	if _, err := c.file.ReadAt(b, int64(id*size)); err != nil {
		return nil, 0, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	flags, count = binary.NativeEndian.Uint16(b[8:]), int(binary.NativeEndian.Uint16(b[10:]))
	overflow := uint64(binary.NativeEndian.Uint32(b[12:]))
	if binary.NativeEndian.Uint64(b) != id || overflow >= c.meta.highWater-id {
		return nil, 0, 0, fmt.Errorf("page %d has a damaged header", id)
	}
	if overflow == 0 || flags == flagLeaf && id != c.meta.root {
		return b, flags, count, nil
	}
	if overflow > most/size+1 {
		return nil, 0, 0, fmt.Errorf("page %d has a damaged header", id)
	}
	for i := id + 1; i <= id+overflow; i++ {
		if err := c.take(i); err != nil {
			return nil, 0, 0, err
		}
	}
	b = make([]byte, (overflow+1)*size)
	if _, err := c.file.ReadAt(b, int64(id*size)); err != nil {
		return nil, 0, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	return b, flags, count, nil
}

// bucket checks the pages of a bucket from its root, and the nested buckets if it
// is the outermost.
func (c *checker) bucket(root uint64) error {
	b, flags, count, err := c.page(root, maxOverflow)
	if err != nil {
		return err
	}
	switch {
	case flags == flagBranch && root != c.meta.root:
		return c.branch(b, root, nil, count, maxDepth)
	case flags == flagLeaf && root == c.meta.root:
		return c.buckets(b, root, count)
	case flags == flagLeaf:
		return nil
	}
	return fmt.Errorf("page %d is of an unknown kind", root)
}

// branchElement returns an element's key and the page that it points to.
func branchElement(b []byte, i int) (key []byte, child uint64, ok bool) {
	at := pageHeader + i*elementSize
	pos, size := uint64(binary.NativeEndian.Uint32(b[at:])), uint64(binary.NativeEndian.Uint32(b[at+4:]))
	start := uint64(at) + pos
	if size == 0 || start+size > uint64(len(b)) {
		return nil, 0, false
	}
	return b[start:][:size], binary.NativeEndian.Uint64(b[at+8:]), true
}

// branch checks a branch page and everything below it. low is its first key,
// unless it is the root. All children have the same depth, so the kind of the
// first decides whether they are leaves.
func (c *checker) branch(b []byte, id uint64, low []byte, count, depth int) error {
	if depth == 0 {
		return errors.New("tree is too deep")
	}
	if count == 0 || pageHeader+count*elementSize > len(b) {
		return fmt.Errorf("page %d has a damaged count", id)
	}
	leaves := false
	var last []byte
	for i := range count {
		key, child, ok := branchElement(b, i)
		if !ok || i > 0 && bytes.Compare(key, last) <= 0 || i == 0 && low != nil && !bytes.Equal(key, low) {
			return fmt.Errorf("page %d has a damaged key", id)
		}
		last = key
		if leaves {
			if err := c.take(child); err != nil {
				return err
			}
			continue
		}
		cb, flags, n, err := c.page(child, maxOverflow)
		if err != nil {
			return err
		}
		switch {
		case flags == flagLeaf && i == 0:
			leaves = true
		case flags == flagBranch:
			if err := c.branch(cb, child, key, n, depth-1); err != nil {
				return err
			}
		default:
			return fmt.Errorf("page %d is of the wrong kind", child)
		}
	}
	return nil
}

// leafElement returns the flags and the value of an element.
func leafElement(b []byte, i int) (flags uint32, value []byte, ok bool) {
	at := pageHeader + i*elementSize
	flags = binary.NativeEndian.Uint32(b[at:])
	pos, ksize, vsize := uint64(binary.NativeEndian.Uint32(b[at+4:])), uint64(binary.NativeEndian.Uint32(b[at+8:])), uint64(binary.NativeEndian.Uint32(b[at+12:]))
	start := uint64(at) + pos + ksize
	if ksize == 0 || start+vsize > uint64(len(b)) {
		return 0, nil, false
	}
	return flags, b[start:][:vsize], true
}

// buckets checks the buckets in the outermost leaf page.
func (c *checker) buckets(b []byte, id uint64, count int) error {
	if pageHeader+count*elementSize > len(b) {
		return fmt.Errorf("page %d has a damaged count", id)
	}
	for i := range count {
		flags, value, ok := leafElement(b, i)
		if !ok || flags != bucketFlag || len(value) < bucketHeader {
			return fmt.Errorf("page %d has a damaged bucket", id)
		}
		if root := binary.NativeEndian.Uint64(value); root != 0 {
			if err := c.bucket(root); err != nil {
				return err
			}
		} else if !inlinePage(value[bucketHeader:]) {
			return fmt.Errorf("page %d has a damaged bucket", id)
		}
	}
	return nil
}

// inlinePage reports whether the page of a small bucket, which is stored in the
// bucket's value, is within its bounds.
func inlinePage(b []byte) bool {
	if len(b) < pageHeader || binary.NativeEndian.Uint16(b[8:]) != flagLeaf {
		return false
	}
	count := int(binary.NativeEndian.Uint16(b[10:]))
	if pageHeader+count*elementSize > len(b) {
		return false
	}
	for i := range count {
		if flags, _, ok := leafElement(b, i); !ok || flags != 0 {
			return false
		}
	}
	return true
}

// freelist checks that no free page is in use.
func (c *checker) freelist() error {
	b, flags, count, err := c.page(c.meta.freelist, 8*c.meta.highWater+pageHeader)
	if err != nil {
		return err
	}
	ids := b[pageHeader:]
	n := uint64(count)
	if count == 0xFFFF {
		n, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if flags != flagFreelist || n > uint64(len(ids))/8 {
		return errors.New("free list is damaged")
	}
	for i := range n {
		id := binary.NativeEndian.Uint64(ids[i*8:])
		if err := c.take(id); err != nil {
			return fmt.Errorf("free list: %w", err)
		}
		c.free.setFree(id)
	}
	return nil
}

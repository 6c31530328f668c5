package journal

// SizeFrom returns the approximate size of the frames after a position.
func (j *Journal) SizeFrom(p Position) int64 {
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	var n int64
	for _, s := range j.segments {
		switch {
		case s.pack != nil:
			if s.last >= p.Segment {
				n += s.end.Load()
			}
		case s.segment > p.Segment:
			n += s.end.Load() - headerSize
		case s.segment == p.Segment:
			n += s.end.Load() - max(p.Offset, headerSize)
		}
	}
	return n
}

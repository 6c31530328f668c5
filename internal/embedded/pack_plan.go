package embedded

import (
	"github.com/lineage-store/lineage/internal/journal"
)

// A store should have few packs, because a lookup may have to try each of them. Packs are merged by size. Each is in
// a tier, and tierFactor neighbours of a tier or lower ones become one pack when together they reach the next tier. So
// a byte is rewritten about once per tier. Below the first tier, manyPacks can make that more often.

const (
	// fullBytes and fullObjects limit one pack: the size of its file, and the number of its
	// ids and bodies, of which the writer keeps a table in memory.
	fullBytes   = 256 << 20
	fullObjects = 1 << 18
	// segmentRatio is the assumed ratio between segments and their pack, and objectBytes the
	// assumed size of an object in a segment.
	segmentRatio = 4
	objectBytes  = 512
	// tierFactor is the ratio between the sizes of tiers.
	tierFactor = 4
)

// Sizes of packs are shares of the largest one. tiers are the upper ends of the tiers. A pack of a quarter of the largest
// size is not merged any more, so those that a large import writes are not written again.
var tiers = []float64{1. / 256, 1. / 64, 1. / 16, 1. / 4}

// manyPacks is the number of neighbours that are merged even if together they stay small. It is larger than the
// number of packs that a higher tier can have.
const manyPacks = 8

// smallPack is the size up to which 'lineage pack' merges packs with any newer one.
const smallPack = 1. / 64

// packFile is a file of the journal for which packing is planned.
type packFile struct {
	journal.SegmentInfo
	share   float64 // of the size of the largest pack
	damaged bool    // it may be unreadable, so it is packed by itself
}

// packJob is a range of files that become one pack.
type packJob struct {
	first, last uint32
	bytes       int64
	share       float64
	files       int
	needed      bool // it must be written even if it is one file
	dense       bool // a pack in it is dense
	damaged     bool // it is one damaged pack
}

func newJob(f packFile) packJob {
	return packJob{first: f.First, last: f.Last, bytes: f.Bytes, share: f.share, files: 1, dense: f.Dense, damaged: f.damaged}
}

// and returns the job that combines two consecutive ones.
func (p packJob) and(next packJob) packJob {
	return packJob{
		first: p.first, last: next.last, bytes: p.bytes + next.bytes, share: p.share + next.share, files: p.files + next.files,
		needed: p.needed || next.needed, dense: p.dense || next.dense,
	}
}

// planAll plans to pack everything, so that few packs remain, each several times larger than the next. Packs that are
// not dense are merged with dense ones only if everything is to become dense.
func planAll(files []packFile, dense bool) (plan []packJob) {
	var jobs []packJob
	for _, f := range files {
		job := newJob(f)
		job.needed = !f.Packed || f.damaged || dense && !f.Dense
		jobs = append(jobs, job)
		for n := len(jobs); n > 1; n = len(jobs) {
			a, b := jobs[n-2], jobs[n-1]
			if a.damaged || b.damaged || a.dense != b.dense && !dense || a.share+b.share > 1 {
				break
			}
			if !(a.needed && b.needed) && a.share >= max(tierFactor*b.share, smallPack) {
				break
			}
			jobs = append(jobs[:n-2], a.and(b))
		}
	}
	for _, p := range jobs {
		if p.needed || p.files > 1 {
			plan = append(plan, p)
		}
	}
	return plan
}

// planSegments plans to pack the sealed segments.
func planSegments(files []packFile) (plan []packJob) {
	adjacent := false
	for _, f := range files {
		if f.Packed {
			adjacent = false
			continue
		}
		job := newJob(f)
		if n := len(plan) - 1; adjacent && plan[n].share+job.share <= 1 {
			plan[n] = plan[n].and(job)
		} else {
			plan = append(plan, job)
		}
		adjacent = true
	}
	return plan
}

// planMerge returns the next merge of packs that is due, from the lowest tier. Dense packs are left as they are,
// because compressing them again takes long.
func planMerge(files []packFile) (packJob, bool) {
	for _, tier := range tiers {
		var job packJob
		for _, f := range files {
			if !f.Packed || f.Dense || f.damaged || f.share >= tier {
				job = packJob{}
				continue
			}
			if job.files == 0 {
				job = newJob(f)
				continue
			}
			if job = job.and(newJob(f)); job.files >= manyPacks || job.files >= tierFactor && job.share >= tier {
				return job, true
			}
		}
	}
	return packJob{}, false
}

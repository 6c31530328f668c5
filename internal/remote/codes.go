package remote

// Codes of methods. They are part of the protocol.
const (
	codeHead uint8 = iota + 1
	codeThread
	codeThreads
	codeThreadsEnding
	codeLastMessage
	codeListThreads
	codeContext
	codeRemnant
	codeContexts
	codeContextsAlone
	codeChildren
	codeBranch
	codeBranches
	codeBranchesOf
	codeBranchesBySource
	codeCheckpoint
	codeCheckpoints
	codeCheckpointsBySource
	codeFind
	codeRun
	codeAncestry
	codeRunsOf
	codeForks
	codeForksAt
	codeLast
	codePath
	codeDigest
	codeSpanSet
	codeAlternatives
	codeSummaries
	codeReflog
	codeValue
	codeValues
	codeValueHistory
	codeValueOwners
	codeHas
	codeBlocks
	codeChunks
	codeWhere
	codeStats
	codeSnapshot
	codeFeed
	codeWait
	codeApply
	codeOutcome
	codeForget
	codeUpload
	codeSync
	codeVerify
	codePack
	codeCollect
	codeCopy
	codeGuests
	// codeNext requests more elements of a sequence.
	codeNext
)

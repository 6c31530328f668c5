package deps

const module = "github.com/lineage-store/lineage"

// An importRule is for a package or a tree of packages. It says what their non-test files may import besides the standard library.
type importRule struct {
	path string   // below the module's path
	tree bool     // for the packages below path too
	any  bool     // may import everything
	ours []string // packages of this module that it may import
	libs []string // modules of others it may import
}

const (
	blake3     = "github.com/zeebo/blake3"
	bolt       = "go.etcd.io/bbolt"
	brotli     = "github.com/andybalholm/brotli"
	cdproto    = "github.com/chromedp/cdproto"
	chromedp   = "github.com/chromedp/chromedp"
	compress   = "github.com/klauspost/compress"
	fsnotify   = "github.com/fsnotify/fsnotify"
	goldmark   = "github.com/yuin/goldmark"
	chroma     = "github.com/alecthomas/chroma/v2"
	bluemonday = "github.com/microcosm-cc/bluemonday"
	goleak     = "go.uber.org/goleak"
	mcp        = "github.com/modelcontextprotocol/go-sdk"
	linear     = "github.com/anishathalye/porcupine"
	rapid      = "pgregory.net/rapid"
	jsonschema = "github.com/santhosh-tekuri/jsonschema/v6"
	sys        = "golang.org/x/sys"
	testify    = "github.com/stretchr/testify"
	text       = "golang.org/x/text"
	hujson     = "github.com/tailscale/hujson"
	burntsushi = "github.com/BurntSushi/toml"
	udiff      = "github.com/aymanbagabas/go-udiff"
	uuid       = "github.com/google/uuid"

	sqlite    = "modernc.org/sqlite"
	postgres  = "github.com/jackc/pgx/v5"
	sqlserver = "github.com/microsoft/go-mssqldb"
)

var (
	belowEngines = []string{"content", "structure", "lineage/backend"}
	belowStore   = join(belowEngines, "internal/fit", "lineage/message", "internal/write", "internal/form", "internal/rawjson", "lineage")
)

// importRules has every package of the module, from the bottom up: a package may only import those listed before it.
var importRules = []importRule{
	{path: "internal/deps"},
	{path: "internal/campaign"},
	{path: "internal/browser", libs: []string{cdproto, chromedp}},
	{path: "internal/varint"},
	{path: "internal/lru"},
	{path: "internal/zframe", libs: []string{compress}},
	{path: "content", ours: []string{"internal/varint"}, libs: []string{blake3, compress}},
	{path: "structure", ours: []string{"content", "internal/varint"}, libs: []string{uuid}},
	{path: "structure/structuretest", ours: []string{"content", "structure"}, libs: []string{rapid}},
	{path: "internal/plain"},
	{path: "internal/amount"},
	{path: "internal/pages"},
	{path: "internal/rawjson"},
	{path: "lineage/backend", ours: []string{"content", "structure", "internal/pages"}},
	{path: "lineage/backend/backendtest", ours: join(belowEngines, "internal/campaign", "structure/structuretest"), libs: []string{testify, rapid, linear}},
	{path: "internal/form", ours: join(belowEngines, "internal/rawjson")},
	{path: "internal/manifest", ours: []string{"structure", "internal/form", "internal/rawjson", "internal/varint", "internal/zframe"}, libs: []string{compress, uuid}},
	{path: "internal/vector"},
	{path: "internal/sqlitefile"},
	{path: "lineage/message", ours: []string{"internal/rawjson"}},
	{path: "lineage/transcript", ours: []string{"internal/rawjson", "lineage/message"}},
	{path: "internal/fit", ours: []string{"internal/rawjson", "lineage/message"}},
	{path: "internal/yielding"},
	{path: "internal/awaited"},
	{path: "internal/semaphore"},
	{path: "internal/logline"},
	{path: "internal/vfs", libs: []string{sys}},
	{path: "internal/scratch", ours: []string{"internal/vfs"}},
	{path: "internal/query", ours: []string{"internal/scratch", "internal/varint", "lineage/transcript"}, libs: []string{text}},
	{path: "lineage/lock", ours: []string{"internal/vfs"}, libs: []string{sys, uuid}},
	{path: "internal/vfs/memfs", ours: []string{"internal/vfs"}},
	{path: "internal/vfs/crashfs", ours: []string{"internal/vfs"}},
	{path: "internal/pack/layout", ours: []string{"lineage/backend", "internal/varint"}},
	{path: "internal/pack/compress", ours: []string{"internal/pack/layout", "internal/zframe"}, libs: []string{brotli, compress}},
	{path: "internal/pack/lookup", ours: []string{"structure", "internal/pack/layout", "internal/varint"}},
	{path: "internal/pack/columns", ours: []string{"content", "structure", "internal/pack/layout", "internal/varint"}},
	{path: "internal/pack", ours: join(belowEngines, "internal/lru", "internal/pack/layout", "internal/pack/compress", "internal/pack/lookup", "internal/pack/columns")},
	{path: "internal/journal", ours: join(belowEngines, "internal/vfs", "internal/varint", "internal/pack", "internal/pack/layout", "internal/pack/lookup")},
	{path: "internal/memtable"},
	{path: "internal/sealed", ours: []string{"internal/lru", "internal/varint", "internal/zframe"}, libs: []string{compress}},
	{path: "internal/index", ours: join(belowEngines, "internal/vfs", "internal/memtable", "internal/sealed"), libs: []string{bolt}},
	{path: "internal/requests", ours: belowEngines},
	{path: "internal/write", ours: join(belowEngines, "internal/form", "internal/requests", "internal/semaphore")},
	{path: "internal/place", ours: join(belowEngines, "internal/form", "internal/rawjson", "internal/write")},
	{path: "internal/judge", ours: belowEngines},
	{path: "internal/judge/judgetest", ours: join(belowEngines, "internal/judge")},
	{path: "internal/embedded/keys", ours: join(belowEngines, "internal/judge", "internal/journal", "internal/sealed", "internal/varint", "internal/index")},
	{path: "internal/embedded/recent", ours: []string{"structure"}},
	{path: "internal/embedded/read", ours: join(belowEngines, "internal/lru", "internal/embedded/keys", "internal/journal", "internal/index")},
	{path: "internal/embedded/entries", ours: join(belowEngines, "internal/embedded/keys", "internal/embedded/recent", "internal/embedded/read", "internal/judge", "internal/journal", "internal/index")},
	{path: "internal/embedded/live", ours: join(belowEngines, "internal/embedded/keys", "internal/embedded/read", "internal/index", "internal/vfs")},
	{path: "internal/embedded/collect", ours: join(belowEngines, "internal/embedded/keys", "internal/embedded/entries", "internal/embedded/live", "internal/index", "internal/journal", "internal/judge", "internal/vfs", "internal/semaphore")},
	{path: "internal/embedded/salvage", ours: join(belowEngines, "internal/embedded/live", "internal/write", "internal/journal")},
	{path: "internal/embedded", ours: join(belowEngines, "internal/embedded/keys", "internal/embedded/recent", "internal/embedded/read", "internal/embedded/entries", "internal/embedded/live", "internal/embedded/collect", "internal/embedded/salvage", "internal/write", "internal/judge", "internal/scratch", "internal/vfs", "internal/vfs/memfs", "internal/journal", "internal/index", "internal/logline", "internal/yielding", "internal/semaphore"), libs: []string{sys}},
	{path: "internal/remote", ours: join(belowEngines, "internal/judge", "internal/varint", "internal/semaphore"), libs: []string{sys}},
	{path: "internal/resume", ours: belowEngines},
	{path: "internal/localsocket", libs: []string{sys}},
	{path: "internal/sharing", ours: join(belowEngines, "internal/requests", "internal/localsocket", "internal/vfs", "internal/embedded", "internal/remote", "internal/resume"), libs: []string{sys}},
	{path: "lineage", ours: join(belowEngines, "internal/fit", "internal/vector", "lineage/message", "lineage/transcript", "internal/rawjson", "internal/form", "internal/write", "internal/vfs", "internal/embedded", "internal/remote", "internal/sharing")},
	{path: "lineage/lineagetest", ours: belowStore},
	{path: "internal/storetest", ours: []string{"lineage"}},
	{path: "lineage/derived", ours: belowStore},
	{path: "lineage/derived/derivedtest", ours: join(belowStore, "internal/campaign", "lineage/derived"), libs: []string{testify, rapid}},
	{path: "lineage/summarize", ours: join(belowStore, "internal/amount")},
	{path: "lineage/chat", ours: join(belowStore, "internal/place", "lineage/transcript")},
	{path: "lineage/chat/chattest", ours: join(belowStore, "internal/campaign", "lineage/chat"), libs: []string{testify, rapid}},
	{path: "internal/derivedfile", ours: join(belowStore, "internal/sqlitefile", "internal/vfs", "lineage/derived", "internal/semaphore"), libs: []string{sqlite}},
	{path: "internal/searched", ours: join(belowStore, "internal/query", "lineage/derived")},
	{path: "lineage/search", ours: join(belowStore, "lineage/transcript", "internal/query", "internal/searched", "internal/sqlitefile", "internal/varint", "internal/vector", "internal/vfs", "lineage/chat", "lineage/derived", "internal/derivedfile", "internal/semaphore"), libs: []string{sqlite}},
	{path: "lineage/search/searchtest", ours: join(belowStore, "internal/searched", "lineage/search"), libs: []string{testify, rapid}},
	{path: "lineage/usage/prices", ours: []string{"lineage/message"}},
	{path: "lineage/message/messagetest", ours: []string{"internal/rawjson", "lineage/message"}, libs: []string{rapid}},
	{path: "lineage/engine", ours: join(belowStore, "lineage/message", "lineage/chat", "internal/semaphore"), libs: []string{uuid}},
	{path: "lineage/engine/enginetest", ours: join(belowStore, "internal/campaign", "lineage/message", "lineage/message/messagetest", "lineage/chat", "lineage/chat/chattest", "lineage/engine"), libs: []string{testify, rapid}},
	{path: "lineage/archive", ours: []string{"content", "internal/awaited", "internal/rawjson", "internal/scratch", "lineage"}, libs: []string{compress}},
	{path: "lineage/archive/agents", ours: []string{"content", "internal/rawjson", "internal/vfs", "lineage", "lineage/message", "lineage/archive"}, libs: []string{compress, uuid}},
	{path: "lineage/archive/chats", ours: []string{"internal/rawjson", "lineage/message", "lineage/archive"}},
	{path: "lineage/archive/lists", ours: []string{"content", "internal/rawjson", "lineage/message", "lineage/archive"}},
	{path: "lineage/archive/formats", ours: []string{"lineage/archive", "lineage/archive/agents", "lineage/archive/chats", "lineage/archive/lists"}},
	{path: "lineage/archive/importer", ours: join(belowStore, "internal/place", "lineage/archive", "lineage/archive/formats", "lineage/derived")},
	{path: "lineage/follow", ours: join(belowStore, "internal/amount", "internal/manifest", "internal/pages", "internal/scratch", "internal/vfs", "lineage/archive", "lineage/archive/formats", "lineage/archive/importer"), libs: []string{fsnotify, sys}},
	{path: "lineage/render", ours: []string{"internal/plain", "internal/rawjson", "lineage/message", "lineage/transcript"}, libs: []string{goldmark, chroma, bluemonday}},
	{path: "lineage/archive/export", ours: join(belowStore, "internal/amount", "internal/vfs", "lineage/message", "lineage/transcript", "lineage/archive", "lineage/render")},
	{path: "lineage/resume", ours: join(belowStore, "internal/vfs", "lineage/archive", "lineage/archive/export", "lineage/follow"), libs: []string{uuid}},
	{path: "lineage/conversation", ours: join(belowStore, "internal/amount", "lineage/lock")},
	{path: "lineage/bundle", ours: join(belowStore, "internal/scratch", "internal/varint", "internal/zframe"), libs: []string{compress}},
	{path: "lineage/graph", ours: join(belowStore, "lineage/derived")},
	{path: "lineage/records", ours: join(belowStore, "lineage/graph", "internal/amount", "internal/pages", "internal/plain", "internal/embedded/salvage", "internal/embedded", "lineage/bundle")},
	{path: "lineage/usage", ours: join(belowStore, "lineage/derived", "internal/derivedfile", "internal/varint", "lineage/archive", "lineage/usage/prices", "lineage/records")},
	{path: "internal/pgcluster", libs: []string{postgres}},
	{path: "internal/pgtest", ours: []string{"internal/pgcluster"}, libs: []string{postgres}},
	{path: "sqladapter", ours: join(belowEngines, "internal/query")},
	{path: "sqladapter/internal/lists", ours: []string{"sqladapter"}},
	{path: "sqladapter/internal/tables", ours: []string{"sqladapter"}},
	{path: "sqladapter/internal/chatrows", ours: join(belowStore, "internal/query", "lineage/chat", "sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables")},
	{path: "sqladapter/internal/projected", ours: join(belowStore, "lineage/chat", "lineage/derived", "sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables", "sqladapter/internal/chatrows")},
	{path: "sqladapter/sqlchat", ours: join(belowStore, "internal/query", "lineage/chat", "lineage/transcript", "sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables", "sqladapter/internal/chatrows", "sqladapter/internal/projected")},
	{path: "sqladapter/project", ours: join(belowStore, "lineage/chat", "lineage/derived", "sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables", "sqladapter/internal/chatrows", "sqladapter/internal/projected")},
	{path: "sqladapter/importing", ours: join(belowStore, "lineage/chat", "sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables", "sqladapter/internal/chatrows", "sqladapter/internal/projected")},
	{path: "sqladapter/sqltest", ours: join(belowStore, "internal/campaign", "lineage/chat", "lineage/chat/chattest", "lineage/engine", "lineage/message", "sqladapter", "sqladapter/sqlchat"), libs: []string{testify, uuid, rapid}},
	{path: "sqladapter/internal/deepagents", libs: []string{testify}},
	{path: "sqladapter/internal/statements", ours: join(belowStore, "sqladapter", "sqladapter/internal/tables")},
	{path: "sqladapter/projecttest", ours: join(belowStore, "internal/campaign", "lineage/derived/derivedtest", "lineage/message", "lineage/message/messagetest", "lineage/chat", "lineage/engine", "sqladapter", "sqladapter/sqlchat", "sqladapter/project", "sqladapter/importing"), libs: []string{testify, rapid}},
	{path: "sqladapter/sqlite", ours: join(belowStore, "internal/sqlitefile", "lineage/chat", "sqladapter", "sqladapter/sqlchat"), libs: []string{sqlite}},
	{path: "sqladapter/archives", ours: join(belowStore, "internal/scratch", "internal/zframe", "lineage/archive", "lineage/archive/agents"), libs: []string{sqlite, compress}},
	{path: "sqladapter/postgres", ours: join(belowStore, "lineage/chat", "sqladapter", "sqladapter/sqlchat"), libs: []string{postgres}},
	{path: "postgres/internal/searchindex", ours: join(belowStore, "internal/query", "internal/searched", "lineage/derived"), libs: []string{postgres}},
	{path: "postgres", ours: join(belowStore, "internal/query", "internal/searched", "postgres/internal/searchindex", "internal/embedded", "internal/embedded/entries", "internal/embedded/keys", "internal/embedded/live", "internal/embedded/read", "internal/embedded/recent", "internal/index", "internal/journal", "internal/judge", "internal/lru", "internal/memtable", "internal/resume", "internal/zframe", "internal/scratch", "sqladapter", "sqladapter/postgres", "internal/semaphore"), libs: []string{postgres, compress}},
	{path: "sqladapter/sqlserver", ours: join(belowStore, "lineage/chat", "sqladapter", "sqladapter/sqlchat"), libs: []string{sqlserver}},
	{path: "sqladapter/internal/elsewhere", ours: join(belowStore, "lineage/chat", "sqladapter", "sqladapter/sqlchat", "sqladapter/sqlite", "sqladapter/sqlserver")},
	{path: "internal/filters", ours: join(belowStore, "internal/query", "lineage/archive")},
	{path: "internal/refs", ours: join(belowStore, "internal/pages", "internal/plain", "lineage/chat")},
	{path: "internal/erasure", ours: join(belowStore, "internal/pages", "lineage/records")},
	{path: "server/access", ours: join(belowStore, "internal/pages", "internal/vfs", "lineage/archive")},
	{path: "internal/difference", ours: belowStore, libs: []string{udiff}},
	{path: "server/mcp", ours: join(belowStore, "internal/amount", "internal/filters", "internal/plain", "internal/refs", "internal/difference", "lineage/archive", "lineage/chat", "lineage/graph", "lineage/records", "lineage/transcript", "server/access"), libs: []string{mcp}},
	{path: "server/mcp/install", ours: []string{"lineage", "lineage/follow"}, libs: []string{hujson, burntsushi}},
	{path: "server/problem", ours: belowStore},
	{path: "server/attachment", ours: []string{"server/problem", "internal/semaphore"}},
	{path: "server", ours: join(belowStore, "internal/localsocket", "internal/vfs", "lineage/records", "server/access", "server/attachment", "server/problem")},
	{path: "server/page", ours: join(belowStore, "internal/filters", "lineage/transcript", "lineage/archive", "lineage/graph", "lineage/records", "lineage/render", "server", "server/attachment")},
	{path: "server/api", ours: join(belowStore, "internal/difference", "internal/erasure", "internal/filters", "internal/pages", "internal/rawjson", "internal/refs", "lineage/archive", "lineage/archive/export", "lineage/bundle", "lineage/chat", "lineage/follow", "lineage/graph", "lineage/records", "lineage/summarize", "lineage/transcript", "server", "server/access", "server/attachment", "server/problem")},
	{path: "cmd", tree: true, any: true},
	{path: "internal/paths", any: true},
	{path: "internal/processes", any: true},
}

// Test files may also import these, and every package below the one they test.
var (
	testPackages = []string{"internal/campaign", "lineage/follow", "internal/storetest", "internal/pack/lookup", "internal/browser", "internal/erasure", "internal/refs", "lineage/records", "lineage/search", "lineage/search/searchtest", "lineage/summarize", "lineage/usage", "server/access", "lineage/lineagetest", "lineage/archive", "lineage/archive/export", "lineage/archive/formats", "lineage/archive/importer", "lineage/chat", "internal/embedded", "internal/vfs/memfs", "internal/logline", "structure/structuretest", "lineage/backend/backendtest", "internal/judge/judgetest", "lineage/chat/chattest", "lineage/derived", "lineage/derived/derivedtest", "lineage/engine", "lineage/engine/enginetest", "lineage/message", "lineage/message/messagetest", "lineage/transcript", "internal/vfs/crashfs", "internal/pgtest", "sqladapter/sqltest", "sqladapter/internal/deepagents", "sqladapter/internal/statements", "sqladapter/project", "sqladapter/importing", "sqladapter/projecttest"}
	testLibs     = []string{testify, compress, sys, rapid, goleak, chromedp, cdproto, jsonschema}
)

// A heavy is a kind of package that only the named packages may link, directly or through other imports.
type heavy struct {
	what     string   // with its article, for messages
	paths    []string // modules with all their packages, or single packages of the standard library
	packages []string
}

var heavies = []heavy{
	{"a SQL driver", []string{sqlite}, []string{"sqladapter/sqlite", "internal/derivedfile", "lineage/search", "lineage/search/searchtest", "lineage/usage", "sqladapter/archives", "cmd"}},
	{"a SQL driver", []string{"github.com/jackc/pgx", "github.com/lib/pq"}, []string{"sqladapter/postgres", "postgres", "postgres/internal/searchindex", "internal/pgcluster", "internal/pgtest", "cmd"}},
	{"a SQL driver", []string{sqlserver, "github.com/denisenkom/go-mssqldb"}, []string{"sqladapter/sqlserver", "cmd"}},
	{"a SQL driver", []string{"github.com/mattn/go-sqlite3", "github.com/ncruces/go-sqlite3", "github.com/glebarez/go-sqlite"}, nil},
	{
		"the SQL library", []string{"database/sql"},
		[]string{"sqladapter", "sqladapter/internal/lists", "sqladapter/internal/tables", "sqladapter/internal/chatrows", "sqladapter/internal/projected", "sqladapter/sqlchat", "sqladapter/project", "sqladapter/importing", "sqladapter/sqltest", "sqladapter/internal/statements", "sqladapter/sqlite", "sqladapter/archives", "sqladapter/postgres", "postgres", "postgres/internal/searchindex", "sqladapter/sqlserver", "sqladapter/projecttest", "internal/derivedfile", "lineage/search", "lineage/search/searchtest", "lineage/usage", "internal/pgcluster", "internal/pgtest", "cmd"},
	},
	{
		"a command-line library",
		[]string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/urfave/cli", "github.com/alecthomas/kong"},
		[]string{"cmd"},
	},
	{"a database server for tests", []string{module + "/internal/pgcluster"}, []string{"internal/pgcluster", "internal/pgtest"}},
	{"a client for browsers", []string{cdproto, chromedp}, []string{"internal/browser"}},
	{
		"an AI client",
		[]string{
			"github.com/openai/openai-go", "github.com/sashabaranov/go-openai", "github.com/anthropics/anthropic-sdk-go",
			"google.golang.org/genai", "github.com/tmc/langchaingo",
		},
		[]string{"cmd"},
	},
	{"a library for MCP", []string{mcp}, []string{"server/mcp", "cmd"}},
}

// storeLinks are all the modules that a program links by importing the store.
var storeLinks = []string{blake3, bolt, brotli, compress, uuid, sys, "github.com/klauspost/cpuid/v2"}

func join(names []string, more ...string) []string {
	return append(append([]string(nil), names...), more...)
}

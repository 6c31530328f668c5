package index

// mapSize64 is small on Windows, where the file grows to what is mapped.
const mapSize64 = 1 << 30

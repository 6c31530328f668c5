package index

// mapSize64 is small on Windows, where the file grows to the mapped size.
const mapSize64 = 1 << 30

// Files dropped on the page, and those of a kind in folders dropped on it.

/** Where a file that came with a folder lay. @type {WeakMap<File, string>} */
export const pathOf = new WeakMap();

/** Deep enough for every storage layout. */
const DEEPEST = 32;

/**
 * @param {DataTransfer} transfer
 * @param {(name: string) => boolean} wanted which files of a folder
 * @returns {Promise<{ files: File[], folders: string[] }>}
 */
export async function filesOf(transfer, wanted) {
  // the transfer is empty once the event is over: everything is asked for before the first wait
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry?.() ?? null);
  const plain = Array.from(transfer.files);
  const folders = entries.filter((entry) => entry?.isDirectory).map((entry) => /** @type {FileSystemEntry} */ (entry));
  const single = plain.filter((file) => !folders.some(({ name }) => name === file.name));
  /** @type {File[]} */
  const found = [];
  for (const folder of folders) await walk(/** @type {FileSystemDirectoryEntry} */ (folder), found, 0, wanted);
  found.sort((a, b) => ((pathOf.get(a) ?? "") < (pathOf.get(b) ?? "") ? -1 : 1));
  return { files: [...single, ...found], folders: folders.map(({ name }) => name) };
}

/**
 * @param {FileSystemDirectoryEntry} folder
 * @param {File[]} found
 * @param {number} depth
 * @param {(name: string) => boolean} wanted
 */
async function walk(folder, found, depth, wanted) {
  const reader = folder.createReader();
  for (;;) {
    // a folder is handed over in pieces; an empty one is the end, and one that may not be read ends as well
    const entries = await new Promise((/** @type {(entries: FileSystemEntry[]) => void} */ resolve) =>
      reader.readEntries(resolve, () => resolve([])),
    );
    if (entries.length === 0) return;
    for (const entry of entries) {
      if (entry.isDirectory && depth < DEEPEST)
        await walk(/** @type {FileSystemDirectoryEntry} */ (entry), found, depth + 1, wanted);
      else if (entry.isFile && wanted(entry.name)) {
        const file = await new Promise((/** @type {(file: File | null) => void} */ resolve) =>
          /** @type {FileSystemFileEntry} */ (entry).file(resolve, () => resolve(null)),
        );
        if (file) {
          pathOf.set(file, entry.fullPath.replace(/^[/]/, ""));
          found.push(file);
        }
      }
    }
  }
}

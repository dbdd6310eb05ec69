"""Every setting: its type, default, bounds and one line of documentation.

Named tuples whose annotations carry the rest: they cost nothing until somebody asks (`all_settings`), so that a search
without a config file pays for no validation.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

from kebab.core.search import DEFAULT_K, DUPLICATES, FUSIONS, MATCHES, MAX_K, RRF_K, SNIPPET_CHARS


class Setting(NamedTuple):
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    alias: str | None = None
    changes_index: bool = False
    """Documents indexed under another value are indexed again."""
    secret: bool = False
    """Never shown."""
    form: str = ""
    """What a text must look like, as a regular expression; `form_words` says it to people."""
    form_words: str = ""


class StoreSettings(NamedTuple):
    path: Annotated[
        str, Setting("The database file; empty means the nearest .kebab folder, else the user's data folder.")
    ] = ""
    busy_timeout_ms: Annotated[
        int, Setting("How long a statement waits for another process's transaction.", 0, 600_000)
    ] = 5000
    lock_wait_s: Annotated[float, Setting("How long a second writer waits before it says who is writing.", 0, 3600)] = (
        10.0
    )
    url: Annotated[
        str,
        Setting("A Qdrant cluster instead of a file: `qdrant://HOST:PORT/NAME`, with `?tls=true` where it speaks TLS."),
    ] = ""
    api_key: Annotated[str, Setting("Key for the cluster; best given as KEBAB_STORE_API_KEY.", secret=True)] = ""
    timeout_s: Annotated[float, Setting("How long one request to the cluster may take.", 0.1, 3600)] = 30.0
    shards: Annotated[
        int,
        Setting(
            "Parts that a new collection is divided into; more than nodes, so that it can grow. 0: one for each node.",
            0,
            10_000,
        ),
    ] = 0
    replicas: Annotated[int, Setting("Copies of each part; with 2, one node may fail.", 1, 100)] = 1
    write_consistency_factor: Annotated[
        int, Setting("Copies that must have a write before it counts as done.", 1, 100)
    ] = 1
    quantization: Annotated[
        str,
        Setting(
            "Smaller vectors, to compare first: scalar takes a half of the memory, binary a sixteenth; "
            "the best are compared again exactly.",
            choices=("none", "scalar", "binary"),
        ),
    ] = "none"
    on_disk: Annotated[bool, Setting("Leave vectors and all indexes in the cluster on disk; texts always are.")] = False


class IngestSettings(NamedTuple):
    max_file_mb: Annotated[float, Setting("Larger files are skipped and counted.", 0.001, 4096)] = 64.0
    max_seconds: Annotated[float, Setting("How long reading one PDF, office file or e-book may take.", 0.1, 86_400)] = (
        120.0
    )
    max_memory_mb: Annotated[int, Setting("How much memory reading one of those may take.", 128, 1_048_576)] = 2048
    pdf_password: Annotated[
        str, Setting("Password for encrypted PDFs; best given as KEBAB_INGEST_PDF_PASSWORD.", secret=True)
    ] = ""
    hidden: Annotated[bool, Setting("Also read files and folders whose name begins with a dot.")] = False
    follow_links: Annotated[bool, Setting("Follow symbolic links found while walking; loops are noticed.")] = False
    ignore_files: Annotated[bool, Setting("Obey .gitignore and .kebabignore.")] = True


class ChunkingSettings(NamedTuple):
    target_tokens: Annotated[
        int,
        Setting("A chunk is closed when the next block would make it longer than this.", 32, 8192, changes_index=True),
    ] = 384
    max_tokens: Annotated[
        int,
        Setting(
            "No chunk is longer than this with its title and headings; the default model takes 512.",
            64,
            8192,
            changes_index=True,
        ),
    ] = 480
    min_tokens: Annotated[
        int, Setting("A section shorter than this joins its neighbour.", 0, 8192, changes_index=True)
    ] = 128
    overlap_tokens: Annotated[
        int,
        Setting(
            "When a long block is split, each part repeats about this much of the one before.",
            0,
            200,
            changes_index=True,
        ),
    ] = 0


class AnalysisSettings(NamedTuple):
    korean: Annotated[
        str,
        Setting("How Korean is cut into terms; morphemes needs the extra `korean`.", choices=("bigrams", "morphemes")),
    ] = "bigrams"


class EmbeddingSettings(NamedTuple):
    model: Annotated[
        str,
        Setting(
            "What makes vectors: `bundled`, `none`, `onnx:FOLDER`, `openai:MODEL` (any endpoint that speaks its API) "
            "or `ollama:MODEL`.",
            form=r"\s*(bundled|none|(onnx|openai|ollama):.+)\s*",
            form_words="bundled | none | onnx:FOLDER | openai:MODEL | ollama:MODEL",
        ),
    ] = "bundled"
    cross_language: Annotated[
        str,
        Setting(
            "Whether a question in one script finds text in another by meaning. auto: questions in Korean, Japanese, "
            "… find English "
            "text once the corpus has text in such a script, and English questions find such text where there is no "
            "other; on: always.",
            choices=("auto", "on", "off"),
        ),
    ] = "auto"
    scripts: Annotated[
        str,
        Setting(
            "What a model of your own reads: all, or latin (text in other scripts then goes to the bundled model). "
            "auto looks at the "
            "tokenizer of onnx:FOLDER, and takes an endpoint's model to read all.",
            choices=("auto", "all", "latin"),
        ),
    ] = "auto"
    threads: Annotated[int, Setting("Processors a model may use; 0 means all.", 0, 256)] = 0
    endpoint: Annotated[
        str,
        Setting(
            "Address of the endpoint; empty means http://127.0.0.1:11434 for ollama and https://api.openai.com/v1 "
            "for openai.",
            form=r"(https?://.+)?",
            form_words="an address that begins with http:// or https://",
        ),
    ] = ""
    api_key: Annotated[str, Setting("Key for the endpoint; best given as KEBAB_EMBEDDING_API_KEY.", secret=True)] = ""
    timeout_s: Annotated[float, Setting("How long one request to the endpoint may take.", 0.1, 3600)] = 60.0
    retries: Annotated[int, Setting("How often a request that failed for a passing reason is sent again.", 0, 20)] = 3
    batch_size: Annotated[int, Setting("Texts in one request to the endpoint.", 1, 2048)] = 64
    pooling: Annotated[
        str, Setting("For onnx:FOLDER: how the vectors of a text's tokens become one.", choices=("mean", "cls"))
    ] = "mean"
    max_tokens: Annotated[
        int, Setting("For onnx:FOLDER: how many tokens the model takes; longer text is embedded in parts.", 16, 32768)
    ] = 512
    query_prefix: Annotated[str, Setting("Written before every query, where a model wants that.")] = ""
    passage_prefix: Annotated[str, Setting("Written before every passage, where a model wants that.")] = ""


class SearchSettings(NamedTuple):
    default_k: Annotated[int, Setting("How many hits a search returns.", 1, MAX_K, alias="default_top")] = DEFAULT_K
    timeout_s: Annotated[float, Setting("How long one search may take before it is stopped.", 0.1, 3600)] = 30.0
    snippet_chars: Annotated[int, Setting("Longest snippet, in characters.", 16, 4000)] = SNIPPET_CHARS
    match: Annotated[
        str,
        Setting("All words, any of them, or all first and any when that gives too few.", choices=MATCHES),
    ] = "auto"
    hybrid_fusion: Annotated[
        str,
        Setting(
            "How lexical and vector hits become one list: by their ranks, or by their scores.",
            choices=FUSIONS,
        ),
    ] = "rrf"
    rrf_k: Annotated[
        int, Setting("The constant of reciprocal rank fusion: the larger, the less the first ranks stand out.", 1, 1000)
    ] = RRF_K
    vector_weight: Annotated[float, Setting("Weight of a vector hit in rrf; a lexical hit has 1.", 0, 10)] = 1.0
    vector_weight_weak: Annotated[
        float,
        Setting(
            "The same where the words know better: the bundled multilingual model on text in the question's own "
            "script.",
            0,
            10,
        ),
    ] = 0.1
    vector_weight_other: Annotated[
        float, Setting("The same for text in another language than the question's, which its words cannot find.", 0, 10)
    ] = 1.1
    lexical_weight_weak: Annotated[
        float,
        Setting(
            "Weight of a lexical hit in rrf where words say little: code, when no passage has all the words.", 0, 10
        ),
    ] = 0.4
    lexical_weight_all: Annotated[
        float,
        Setting(
            "The same for a passage with all the words, where vectors are weak: in questions in another script than "
            "Latin.",
            0,
            10,
        ),
    ] = 2.0
    convex_weight: Annotated[float, Setting("Share of the vector score in convex.", 0, 1)] = 0.65
    convex_weight_weak: Annotated[
        float,
        Setting(
            "The same where the words know better: the bundled multilingual model on text in the question's own "
            "script.",
            0,
            1,
        ),
    ] = 0.25
    duplicates: Annotated[
        str,
        Setting(
            "Passages with the same text, but for a small edit in long ones. fold: the best one is shown and names "
            "the others; show: each "
            "is a hit of its own.",
            choices=DUPLICATES,
        ),
    ] = "fold"
    freshness: Annotated[
        str,
        Setting(
            "What a search looks at beside the index. hits: whether the files of its hits have changed since "
            "(`stale`); check: also "
            "whether any file has, which is said in a note; off: nothing.",
            choices=("hits", "check", "off"),
        ),
    ] = "hits"
    freshness_ms: Annotated[float, Setting("How long check may look at files.", 1, 10_000)] = 100.0
    title_weight: Annotated[float, Setting("Weight of the document title in lexical ranking.", 0, 100)] = 8.0
    heading_weight: Annotated[float, Setting("Weight of the headings above a passage in lexical ranking.", 0, 100)] = (
        2.0
    )
    text_weight: Annotated[float, Setting("Weight of the passage itself in lexical ranking.", 0, 100)] = 1.0
    cjk_weight: Annotated[
        float, Setting("Weight of Chinese, Japanese and Korean terms in lexical ranking.", 0, 100)
    ] = 1.0


class LibrarySettings(NamedTuple):
    fetch_seconds: Annotated[
        float, Setting("How long fetching one state of a repository, or a file, may take.", 1, 86_400)
    ] = 600.0
    fetch_mb: Annotated[
        int, Setting("How large a fetched file, or all copies of one repository's states, may be.", 1, 1_048_576)
    ] = 2048
    organisations: Annotated[
        str,
        Setting(
            "Only libraries of these owners are added and found, parted by commas; empty means all.",
            form=r"(?:\s*[^/\s,]+\s*(?:,\s*[^/\s,]+\s*)*)?",
            form_words="owners parted by commas, such as acme, local",
        ),
    ] = ""
    github_api: Annotated[
        str,
        Setting("Where --fetch-metadata asks for stars.", form=r"https?://\S+", form_words="an http or https address"),
    ] = "https://api.github.com"


class ServeSettings(NamedTuple):
    host: Annotated[
        str,
        Setting(
            "Where kb serve listens; anything but this machine itself needs serve.token.",
            form=r"\S+",
            form_words="a name or address",
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Setting("The port; 0 takes a free one.", 0, 65_535)] = 8765
    token: Annotated[
        str,
        Setting(
            "What callers must show; best given as KEBAB_SERVE_TOKEN.",
            secret=True,
            form=r"([!-~]{16,})?",
            form_words="16 or more letters, digits and signs, without spaces",
        ),
    ] = ""
    allowed_hosts: Annotated[
        str,
        Setting(
            "Names under which the server is called, besides its address, parted by commas.",
            form=r"(?:\s*[^/\s,]+\s*(?:,\s*[^/\s,]+\s*)*)?",
            form_words="names parted by commas, such as kebab.lan",
        ),
    ] = ""
    max_body_kb: Annotated[int, Setting("Larger requests are refused.", 1, 1_048_576)] = 1024
    timeout_s: Annotated[float, Setting("How long a request may take to arrive, and then its answer.", 0.1, 3600)] = (
        30.0
    )
    requests_per_second: Annotated[
        int, Setting("How many requests one address may send, on average.", 1, 1_000_000)
    ] = 1000


class AskSettings(NamedTuple):
    model: Annotated[
        str,
        Setting(
            "What writes answers: empty for none (answers are quotations), `openai:MODEL` (any endpoint that speaks "
            "its API) or "
            "`ollama:MODEL`.",
            form=r"\s*((openai|ollama):.+)?\s*",
            form_words="empty | openai:MODEL | ollama:MODEL",
        ),
    ] = ""
    endpoint: Annotated[
        str,
        Setting(
            "Address of the endpoint; empty means http://127.0.0.1:11434 for ollama and https://api.openai.com/v1 "
            "for openai.",
            form=r"(https?://.+)?",
            form_words="an address that begins with http:// or https://",
        ),
    ] = ""
    api_key: Annotated[str, Setting("Key for the endpoint; best given as KEBAB_ASK_API_KEY.", secret=True)] = ""
    timeout_s: Annotated[
        float, Setting("How long a model may take for an answer, from the question to its last word.", 0.1, 3600)
    ] = 120.0
    score_gate: Annotated[
        float,
        Setting(
            "Hits with a lower score, 0 to 1, are no evidence. Only a floor: whether there is an answer is decided "
            "by evidence.",
            0,
            1,
        ),
    ] = 0.05
    max_tokens: Annotated[int, Setting("About how many tokens of passages an answer may rest on.", 64, 1_000_000)] = (
        3000
    )
    answer_tokens: Annotated[int, Setting("How many tokens a model may write.", 16, 100_000)] = 800
    unsupported: Annotated[
        str,
        Setting(
            "What becomes of an answer with a claim that no cited passage supports: the claim is marked, or there is "
            "no answer.",
            choices=("mark", "refuse"),
        ),
    ] = "mark"


class Settings(NamedTuple):
    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    library: LibrarySettings = LibrarySettings()
    serve: ServeSettings = ServeSettings()
    ask: AskSettings = AskSettings()


class SettingField(NamedTuple):
    """One setting as the loader, `config show` and the reference see it."""

    section: str
    name: str
    type: type
    default: Any
    doc: str
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    alias: str | None
    changes_index: bool
    secret: bool
    form: str
    form_words: str

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"KEBAB_{self.section}_{self.name}".upper()

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return " | ".join(f'"{choice}"' for choice in self.choices)
        if self.form_words:
            return self.form_words
        if self.type is bool:
            return "true | false"
        if self.least is not None:
            return f"{self.least} to {self.most}" if self.most is not None else f"at least {self.least}"
        return "text"


def all_settings() -> list[SettingField]:
    return [
        SettingField(section, name, hint.__origin__, getattr(defaults, name), *hint.__metadata__[0])
        for section, defaults in Settings()._asdict().items()
        for name, hint in get_type_hints(type(defaults), include_extras=True).items()
    ]

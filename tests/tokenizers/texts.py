"""Texts on which tokenizers like to differ; the same for the same seed."""
import random
import unicodedata

# Unicode 14 is what PCRE2 10.40 to 10.42 and Python 3.11 know; letters added later are split otherwise.
ASSIGNED = [chr(c) for c in range(1, 0x20000)
            if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) not in ("Cn", "Co")]
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "äöüßéèêñçåøæœşğıİłžřů", "абвгдежзиклмнопрстуфхцчшщъыьэюя",
    "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώ", "אבגדהוזחטיכלמנסעפצקרשת", "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "अआइईउऊकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुू्",
    "กขคงจฉชซญดตถทนบปผฝพฟมยรลวสหอะาิีุู่้", "あいうえおかきくけこさしすせそアイウエオカキクケコ", "一二三四五六七八九十人大小中国日本語文字学生", "가나다라마바사아자차카타파하한국어",
    "აბგდევზთიკლმნოპჟრს", "աբգդեզէըթժիլխծկ", "ሀለሐመሠረሰሸቀበተ", "ខគឃងចឆជឈញដ", "0123456789", "٠١٢٣٤٥٦٧٨٩०१२३४५ⅣⅧ½²", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u2003", "\u180e", "\u200b", "\u0085", "\u2028",
          "\u2029", "\x0b", "\x0c", "\x1c", "\x1f", "\ufeff", "\u1680", "\u202f", "\u205f", "\r", "\n \n\t"]
PIECES = ["'s", "'S", "'ll", "'LL", "'re", "'\u017f", "'t", "don't", "I'M", "we'Ve", "x='s", "\u2019s", "http://a.b/c?d=e&f=1", "1234567", "3.14",
          "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f",
          "e\u0301", "\u1100\u1161\u11a8", "\u212b", "\u2126", "\u0344", "a\u0323\u0307", "a\u0307\u0323", "\u0958", "\ufb01", "\u1e9b\u0323",
          "\u0f73", "\u2adc", "\U0001d15e", "\u0385", "q\u0307\u0323", "\u0041\u030a", "\u3099", "か\u3099",
          "<|endoftext|>", "<|im_start|>user\n", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<s>", "</s>", "<unk>", "<0x0A>", "[INST]",
          "<|im_start|", "<|tool|>", "<|tool|", "<mask>", " <mask> ", "\u2581", "\u2581the", "def f(x):\n    return x\n", "/* c */", "\x00", "\x01\x7f"]


def word(rng):
    kind = rng.random()
    if kind < 0.55:
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9)))
    if kind < 0.75:
        return rng.choice(PIECES)
    if kind < 0.9:
        return "".join(rng.choice(ASSIGNED) for _ in range(rng.randint(1, 4)))
    return rng.choice(["the ", "The", "of", "and", "tokens", "request", "policy", "  return", "STEP", "kV", "cache"])


def text(rng):
    kind = rng.random()
    if kind < 0.02:  # a very long word
        alphabet = rng.choice(ALPHABETS[:12])
        return "".join(rng.choice(alphabet[:rng.randint(1, len(alphabet))]) for _ in range(rng.randint(90, 3000)))
    if kind < 0.05:  # runs
        return "".join(rng.choice([" ", "\n", "\t", "\r\n", "\u00a0", "a", "=", "-", "."]) * rng.randint(1, 200) for _ in range(rng.randint(1, 8)))
    if kind < 0.06:
        return ""
    out = []
    for _ in range(rng.randint(1, 40)):
        out.append(word(rng))
        if rng.random() < 0.6:
            out.append(rng.choice(SPACES) if rng.random() < 0.4 else " ")
    return "".join(out)


def texts(n, seed):
    rng = random.Random(seed)
    return [text(rng) for _ in range(n)]
